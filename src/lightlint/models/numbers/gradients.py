"""Gradients that a program sets to zero in some places, by rows or by a mask, and the zeros and ones of which masks are made."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.events import RowsCleared, RowsSet
from lightlint.engine.machine import Machine
from lightlint.values.core import Constant, Value, is_constant, number_of, places_of
from lightlint.values.training import Tensor, tensors_in

_MOST_MOVES = 4
_BITS = (0, 1)
_FILLINGS = {"ones": 1, "zeros": 0}


def note_new(made: Tensor, name: str, value: Value | None = None) -> None:
    """Note with which number a new tensor is filled: by `zeros_like` or `new_ones`, or by `full` with a `value`."""
    filling = _FILLINGS.get(name.removeprefix("new_").removesuffix("_like"))
    made.filling = filling if value is None else 1 if is_constant(value, True) else number_of(value)
    made.binary = made.filling in _BITS


def note_set(machine: Machine, tensor: Tensor, index: Value, new: Value, node: ast.AST) -> None:
    """`tensor[index] = new`."""
    change(tensor)
    tensor.binary = tensor.binary and number_of(new) in _BITS
    if _is_zero(new):
        tensor.cleared = True
    held = tensor.data_of or tensor
    if held.parameter and not _is_one(index):
        machine.emit(RowsSet(machine.where(node), held))
    if _is_zero(new) and not _is_one(index) and not _by_gradients(index):
        note_cleared(machine, tensor, node)


def note_in_place(machine: Machine, tensor: Tensor, name: str, given: Arguments, node: ast.AST) -> None:
    """A method that changes a tensor in place."""
    change(tensor)
    part = tensor.part_of
    held = tensor.data_of or tensor
    filled = _filled_with(name, given)
    tensor.binary = filled in _BITS
    held.filling = filled
    if part is not None and part.data_of is None and filled == 0:
        note_cleared(machine, part, node)
    if _by_gradients(*given.values()):
        return
    if name in ("masked_fill_", "index_fill_") and _is_zero(next(iter(given.positional[-1:]), None)):
        note_cleared(machine, tensor, node)
    if name == "mul_" and is_mask(given.get(0, "other")):
        note_cleared(machine, tensor, node)


def note_filled(found: Value, name: str, given: Arguments) -> None:
    """A copy with zeros in places: `masked_fill`, `index_fill`, `where` of a tensor and zero."""
    filling = name in ("masked_fill", "index_fill")
    if not (filling or name == "where") or not isinstance(found, Tensor):
        return
    held, chosen = given.positional[:1], given.positional[1:2]
    if not filling:
        held, chosen = given.positional[1:], held
    others = [each for each in held if isinstance(each, Tensor) and not _is_zero(each)]
    zeros = any(_is_zero(each) for each in (*given.positional[1:], *given.keywords.values()))
    if len(others) == 1 and zeros and not _by_gradients(*chosen):
        found.taken_from, found.cleared = others[0], True


def note_update(machine: Machine, symbol: str, left: Value, right: Value, node: ast.AST) -> None:
    """`left *= right` and its like, of any two values."""
    if isinstance(node, ast.AugAssign) and isinstance(left, Tensor):
        change(left)
        if symbol == "*" and is_mask(right):
            note_cleared(machine, left, node)


def note_given(machine: Machine, parameter: Tensor, gradient: Value, node: ast.AST) -> None:
    """`parameter.grad = gradient`."""
    parameter.gradient_changed = True
    if isinstance(gradient, Tensor) and _is_masked(gradient):
        machine.emit(RowsCleared(machine.where(node), parameter))


def note_hook(machine: Machine, parameter: Tensor, hook: Value | None, gradient: Tensor, node: ast.AST) -> None:
    """`parameter.register_hook(hook)`: what this makes of a gradient is what the parameter gets."""
    gradient.gradient_of, gradient.gradient_touched = parameter, True
    before = len(machine.events)
    found = call(machine, hook, Arguments([gradient]), node) if hook is not None else None
    del machine.events[before:]  # it runs later, in each backward pass
    if isinstance(found, Tensor) and _is_masked(found):
        machine.emit(RowsCleared(machine.where(node), parameter))


def note_cleared(machine: Machine, tensor: Tensor, node: ast.AST) -> None:
    """Numbers of a tensor were set to zero: of a gradient, perhaps, or a view of one."""
    of = _gradient(tensor)
    if of is not None:
        machine.emit(RowsCleared(machine.where(node), of))


def is_mask(value: Value | None) -> bool:
    """Whether a tensor is one of zeros and ones, in places that the program has chosen."""
    if not isinstance(value, Tensor):
        return False
    if value.terms is not None and value.terms[0] == "-" and is_constant(value.terms[1][0], 1, 1.0):
        return is_mask(value.terms[1][1])
    return value.binary and value.filling is None and not _by_gradients(value)


def _by_gradients(*values: Value) -> bool:
    """Whether places were chosen by what gradients, or weights that have some, are: NaN, or the smallest."""
    return any(each.gradient_touched or each.gradient_of is not None for value in values for each in tensors_in(value))


def _is_masked(value: Tensor) -> bool:
    """Whether it is a gradient, or a copy of one, that is zero in places."""
    if value.terms is not None and value.terms[0] == "*":
        left, right = value.terms[1]
        pairs = ((left, right), (right, left))
        return any(isinstance(one, Tensor) and _gradient(one) is not None and is_mask(other) for one, other in pairs)
    cleared, made_of = value.cleared, value
    for _ in range(_MOST_MOVES):
        if made_of.gradient_of is not None:
            return cleared
        if made_of.made_of is None:
            break
        made_of = made_of.made_of
    return False


def _gradient(tensor: Tensor) -> Tensor | None:
    """The parameter whose gradient a tensor is, or shows a part of."""
    of = tensor.gradient_seen
    return of if of is None or of.parameter else next(iter(of.parameters), None)


def change(*values: Value) -> None:
    """Gradients among some values, or views of them, are given other numbers."""
    for tensor in (each for value in values for each in tensors_in(value)):
        of = tensor.gradient_seen
        if of is not None:
            of.gradient_changed = True


def _is_one(index: Value) -> bool:
    """Whether an index is a number, or one for each dimension."""
    return all(isinstance(each, Constant) for each in places_of(index))


def _is_zero(value: Value | None) -> bool:
    return is_constant(value, 0, 0.0, False) or (isinstance(value, Tensor) and value.filling == 0)


def _filled_with(name: str, given: Arguments) -> float | None:
    """With what a method fills a tensor."""
    return {"zero_": 0, "fill_": number_of(given.get(0, "value"))}.get(name)
