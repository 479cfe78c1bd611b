"""Operators between tensors."""

from __future__ import annotations

import ast
from collections.abc import Hashable

from lightlint.engine.events import (
    DifferenceSquared,
    Spread,
    Summed,
)
from lightlint.engine.events.huggingface import TokenCompared
from lightlint.engine.machine import Machine
from lightlint.models.numbers import angles, gradients, halves
from lightlint.models.numbers.sums import summands
from lightlint.models.sequences import masks, pooled
from lightlint.models.tensors import axes, draws, forms, layouts, precision
from lightlint.models.tensors.derivation import derive, meant_or_gathered, mix, without_given_gradients
from lightlint.values.core import (
    Constant,
    Sequence,
    Unknown,
    Value,
    is_constant,
    number_of,
)
from lightlint.values.training import Instance, Tensor


def binary(machine: Machine, symbol: str, left: Value, right: Value, node: ast.AST) -> Value | None:
    """An operator with a tensor on a side; None where there is none."""
    first, second = isinstance(left, Tensor), isinstance(right, Tensor)
    if not (first or second) or isinstance(left, Sequence) or isinstance(right, Sequence):
        return None
    if symbol in ("==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"):
        meet(machine, symbol, left, right, node)
        _note_token(machine, left, right, node)
        made = derive(machine, node, left, right, graph=False, how="comparison")
        made.binary = True
        made.stored = halves.FLAG
        draws.compared(made, symbol, left, right)
        masks.compared(made, symbol, left, right, node)
        return made
    mix(machine, node, symbol, left, right)
    made = derive(machine, node, left, right, saves=symbol not in ("+", "-", "%"))
    _weigh(symbol, made, left, right)
    masks.combined(machine, made, symbol, left, right, node)
    pooled.combined(made, symbol, left, right)
    halves.combined(machine, made, symbol, left, right, node)
    angles.combined(machine, made, symbol, left, right, node)
    if symbol in ("+", "-", "*"):
        made.terms = (symbol, (left, right))
    if (symbol == "*" and left is right) or (symbol == "**" and is_constant(right, 2, 2.0)):
        note_square(machine, left, node)
    if symbol == "-":
        precision.lessen(machine, made, left, right, node)
    if symbol == "@":
        layouts.product(machine, made, left, right, node)
    else:
        axes.same(made, axes.leading(left, right))
        made.weights = None
        if any(isinstance(each, Tensor) and not each.scalar and each.rank != made.rank for each in (left, right)):
            made.rank = None if made.rank == 1 else made.rank  # a row is spread over what has more dimensions
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        meet(machine, symbol, left, right, node)
    if symbol in ("+", "-"):
        note_sum(machine, made, left, right, node, taken=symbol == "-")
    gradients.note_update(machine, symbol, left, right, node)
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        _combine(symbol, made, left, right)
    else:
        tensor, other = (left, right) if isinstance(left, Tensor) else (right, left)
        assert isinstance(tensor, Tensor)
        if isinstance(other, Constant) or (isinstance(other, Unknown) and other.plain):
            axes.sized(made, tensor)
        _scale(machine, symbol, made, tensor, other)
        made.mixed |= isinstance(other, Unknown) and not other.plain
        if made.mixed:
            made.cuts = meant_or_gathered(made.cuts)  # it may be a tensor with a graph of its own
    return made


def _note_token(machine: Machine, left: Value, right: Value, node: ast.AST) -> None:
    for token, other in ((left, right), (right, left)):
        holder = token.given_by if isinstance(token, Unknown) and token.hint.endswith("_token_id") else None
        if isinstance(token, Unknown) and isinstance(holder, Instance):
            machine.emit(TokenCompared(machine.where(node), holder, token.hint, other))


def note_square(machine: Machine, value: Value | None, node: ast.AST) -> None:
    """Write down that a difference is squared."""
    if isinstance(value, Tensor) and value.terms is not None and value.terms[0] == "-":
        machine.emit(DifferenceSquared(machine.where(node), *value.terms[1]))


def meet(machine: Machine, symbol: str, left: Value | None, right: Value | None, node: ast.AST) -> None:
    """Write down that a column and a row meet; those of one tensor are held against each other on purpose."""
    if not (isinstance(left, Tensor) and isinstance(right, Tensor) and forms.differ(left, right)):
        return
    if left.source is not right.source:
        machine.emit(Spread(machine.where(node), symbol, left, right))


def _weigh(symbol: str, made: Tensor, left: Value, right: Value) -> None:
    """Gradients given back that only weigh something, or change a weight, are meant to be constants."""
    pair = [each for each in (left, right) if isinstance(each, Tensor)]
    given = any(cut.how == "autograd.grad" for cut in made.cuts)
    if given and any(each.parameter or (symbol in ("*", "/") and each.requires_grad) for each in pair):
        made.cuts = without_given_gradients(made.cuts)
    known = {each.form for each in pair}
    made.form = known.pop() if len(known) == 1 else forms.ROW if known == {forms.ROW, None} else None


def note_sum(machine: Machine, made: Tensor, left: Value, right: Value, node: ast.AST, *, taken: bool = False) -> None:
    """Write down a sum, or a difference where the right side is `taken` away: how far something is from a sum is no sum."""
    if not made.requires_grad:
        return
    here, turns = machine.site(node), turns_to_batch(machine)
    sums = (left,) if taken else (left, right)
    before = next((t for t in sums if isinstance(t, Tensor) and any(site == here for site, _ in t.sums)), None)
    if before is not None:
        consumed = any(graph.consumed for graph in before.graph)
        waiting = frozenset(graph for graph in before.graph if graph.saves and not graph.consumed)
        batches = {each for site, each in before.sums if site == here}
        machine.emit(
            Summed(machine.where(node), made, before, consumed, turns not in batches, batches != {turns}, waiting)
        )
    elif isinstance(left, Tensor) and isinstance(right, Tensor):
        _ask_for_more(machine, left, right)
    made.sums |= {(here, turns)}


def _ask_for_more(machine: Machine, left: Tensor, right: Tensor) -> None:
    """Where something of this turn is added to something of the last one, the next shows whether that is a sum of all.

    Asked of the innermost loop over batches; else, where a backward pass went over one of them, of the innermost in its second
    turn: it trains without a loader.
    """
    trained = any(graph.consumed for each in (left, right) for graph in each.graph)
    loop = next((each for each in reversed(machine.loops) if each.kind == "batch"), None)
    loop = loop or next((each for each in reversed(machine.loops) if trained and each.turn > 1), None)
    if loop is not None and loop.turn > 1:
        of = [{graph.made >= loop.begun for graph in each.graph} for each in (left, right)]
        loop.again |= {False} in of and any(True in each for each in of)


def turns_to_batch(machine: Machine) -> tuple[int, ...]:
    """The turns of the loops down to the innermost one over batches."""
    last = max((index for index, loop in enumerate(machine.loops) if loop.kind == "batch"), default=-1)
    return tuple(loop.turn for loop in machine.loops[: last + 1])


def _scale(machine: Machine, symbol: str, made: Tensor, tensor: Tensor, other: Value) -> None:
    if symbol in ("*", "/"):
        made.role, made.reduction = (tensor.role if tensor.role == "loss" else None), tensor.reduction
        made.criterion, made.factors = tensor.criterion, tensor.factors
        if symbol == "*" and tensor.factors is not None:
            tensor.factors.append(other)
        made.scaled = tensor.scaled | {other.key if other.key is not None else ("?", machine.clock)}
        is_mean = number_of(other) == len([*summands(tensor)])  # of what it is the sum of
        made.divided = tensor.divided | (_factors(other) if symbol == "/" and not is_mean else frozenset())
        if symbol == "*" and "batch-size" in other.traits:
            made.reduction = "sum"
    elif symbol in ("+", "-"):
        made.role = tensor.role if tensor.role == "loss" else None
        made.reduction, made.scaled, made.criterion = tensor.reduction, tensor.scaled, tensor.criterion
        made.divided = tensor.divided


def _factors(value: Value) -> frozenset[Hashable]:
    """A number, and what it is a product of."""
    powers = value.factors or () if isinstance(value, Unknown) else ()
    return frozenset([value.key, *(key for key, power in powers if power == 1)])


def _combine(symbol: str, made: Tensor, left: Tensor, right: Tensor) -> None:
    roles = (left.role, right.role)
    if "loss" not in roles:
        return
    made.role, made.criterion = "loss", left.criterion or right.criterion
    made.reduction = left.reduction if left.reduction == right.reduction else left.reduction or right.reduction
    made.scaled = left.scaled | right.scaled if symbol in ("*", "/") else left.scaled & right.scaled
    made.divided = left.divided | right.divided if symbol in ("*", "/") else left.divided & right.divided
