"""What statements do that hold no others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lightlint.engine.containers import assign_target, extend, listed
from lightlint.engine.events import (
    Appended,
    Emptied,
    LeafChanged,
    Left,
    LoadedUsed,
    OperationDropped,
    Rebound,
    ResultDropped,
)
from lightlint.engine.execution import SIMPLE, LeaveLoop, NextTurn, Raised, Returned, annotation_of, evaluate
from lightlint.engine.imports import import_from, import_module
from lightlint.engine.language import operators
from lightlint.engine.language.counters import OF_TURNS, adds_turns, is_same_place, note_added
from lightlint.engine.language.narrowing import narrow
from lightlint.engine.machine import Machine
from lightlint.values.core import (
    DEFAULT,
    NONE,
    ON_SOME,
    Constant,
    Device,
    Library,
    Mapping,
    Scope,
    Sequence,
    Unknown,
    Value,
    number_of,
    text_of,
    traits_of,
)
from lightlint.values.training import Instance, Tensor


def _expression(machine: Machine, node: ast.Expr, scope: Scope) -> None:
    value = evaluate(machine, node.value, scope)
    here = isinstance(value, Tensor) and value.site == machine.site(node.value)
    if here and isinstance(node.value, ast.BinOp):
        machine.emit(OperationDropped(machine.where(node.value), operators.SYMBOLS[type(node.value.op)]))
    moved = value.moved_from or value.shaped_from if isinstance(value, Tensor) and here else None
    if isinstance(value, Tensor) and moved is not None and not _is_made_for_move(moved):
        machine.emit(ResultDropped(machine.where(node.value), value))


def _is_made_for_move(tensor: Tensor) -> bool:
    """Whether a tensor was made only to move it, as one does to start CUDA: `torch.zeros(1).cuda()`."""
    return tensor.origin is not None and tensor.origin == tensor.site and not tensor.named


def _assign(machine: Machine, node: ast.Assign, scope: Scope) -> None:
    value = evaluate(machine, node.value, scope)
    first = node.targets[0]
    if machine.loops and isinstance(value, (Constant, Sequence)) and isinstance(node.value, _MAY_COUNT):
        value = _recounted(machine, first, node.value, value, scope)
    symbol, parts = value.terms or ("", ())
    if machine.loops and symbol == "+" and isinstance(node.value, ast.BinOp) and is_same_place(first, node.value.left):
        note_added(machine, parts[0], value, node)
    if isinstance(value, Tensor) and isinstance(first, ast.Name):
        before = scope.names.get(first.id)
        is_held = isinstance(before, Tensor) and (before.parameter or before.buffer)
        if isinstance(before, Tensor) and is_held and before not in (value, value.data_of):
            machine.emit(Rebound(machine.where(node), before, value))
    if isinstance(value, Library) and value.names_tensor_type() and _hangs_on_default(machine):
        value = Unknown()  # as of a conditional expression
    if isinstance(value, Constant) and type(value) in (Constant, Device) and isinstance(value.value, str):
        value = type(value)(value.value, value.traits | DEFAULT) if _hangs_on_default(machine) else value
    for target in node.targets:
        assign_target(machine, target, value, scope)


def _hangs_on_default(machine: Machine) -> bool:
    """Whether the default of a parameter let something be chosen."""
    return any(each.traits >= DEFAULT for each in machine.conditions)


_MAY_COUNT = (ast.BinOp, ast.Call, ast.IfExp, ast.Tuple)


def _recounted(machine: Machine, target: ast.expr, written: ast.expr, value: Value, scope: Scope) -> Value:
    """What is assigned, with numbers that are added to themselves, perhaps behind a test, widened as those of `+=` are."""
    ways = [*_ways(written)]
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, Sequence):
        rows = [each.elts for each in ways if isinstance(each, ast.Tuple) and len(each.elts) == len(target.elts)]
        if len(value.items) == len(target.elts):
            for place, part in enumerate(target.elts):
                for row in rows:
                    value.items[place] = _recounted(machine, part, row[place], value.items[place], scope)
        return value
    sums = [each for each in ways if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add)]
    name = ast.unparse(target) if sums and isinstance(target, (ast.Name, ast.Attribute)) else ""
    added = next((each.right for each in sums if ast.unparse(each.left) == name), None)
    before = evaluate(machine, target, scope) if added is not None else None
    first, last = number_of(before), number_of(value)
    if not isinstance(added, ast.Constant) or first is None or last is None or not isinstance(value, Constant):
        return value
    if not isinstance(added.value, (int, float)) or last != first + added.value or before is None:
        return value
    return _counted(machine, written, "+", before, Constant(added.value), value)


def _ways(written: ast.expr) -> Iterator[ast.expr]:
    """What may be assigned: on both sides of a test, up to a limit, going round."""
    match written:
        case ast.IfExp():
            yield from (*_ways(written.body), *_ways(written.orelse))
        case ast.Call(func=ast.Name(id="min" | "max"), args=args):
            yield from args
        case ast.BinOp(op=ast.Mod()):
            yield written.left
        case _:
            yield written


def _annotated(machine: Machine, node: ast.AnnAssign, scope: Scope) -> None:
    if scope.cls is not None and isinstance(node.target, ast.Name):
        scope.cls.fields.append((node.target.id, node.annotation, node.value))
    if node.value is not None:
        value = evaluate(machine, node.value, scope)
        if isinstance(value, Unknown):
            hint = node.target.id if isinstance(node.target, ast.Name) else ""
            annotation = annotation_of(machine, node.annotation, scope)
            value = machine.models.annotated(machine, value, annotation, hint, node)
        assign_target(machine, node.target, value, scope)


def _update(machine: Machine, node: ast.AugAssign, scope: Scope) -> None:
    """`+=` and its like."""
    symbol = operators.SYMBOLS[type(node.op)]
    before = evaluate(machine, node.target, scope)
    if isinstance(before, Tensor) and before.leaf and before.requires_grad and machine.grad[-1]:
        machine.emit(LeafChanged(machine.where(node), before))
    change = evaluate(machine, node.value, scope)
    if symbol == "+" and isinstance(before, Sequence) and before.kind == "list":
        items, known = listed(machine, change, node)
        if items:
            machine.emit(Appended(machine.where(node), before, items[0], consumed_before=False))
        extend(before, items, known=known)
        return
    if symbol == "|" and isinstance(before, Mapping) and isinstance(change, Mapping):
        before.items.update(change.items)
        before.more |= change.more
        return
    result = operators.binary(machine, symbol, before, change, node)
    if isinstance(before, Tensor) and before.parameter and symbol != "@":
        result = before  # changed in place, it stays the parameter
    elif isinstance(result, Tensor):
        result.traits = result.traits | ON_SOME if machine.split_ranks else result.traits - ON_SOME
    if machine.loops and isinstance(result, (Constant, Unknown)) and not isinstance(change, Tensor):
        result = _counted(machine, node, symbol, before, change, result)
    if symbol == "+":
        note_added(machine, before, result, node)
    assign_target(machine, node.target, result, scope)


def _counted(
    machine: Machine,
    node: ast.AugAssign | ast.expr,
    symbol: str,
    before: Value,
    change: Value,
    result: Constant | Unknown,
) -> Value:
    """A counter in a loop, widened: a known number would hide what happens in later turns."""
    if isinstance(result, Constant) and not isinstance(result.value, (int, float)):
        return result
    if isinstance(before.key, tuple) and before.key[:2] == ("index", machine.loops[-1].site[1]):
        return result  # the loop's own number, which each turn sets anew
    traits = traits_of(before, change)
    if symbol == "+" and "batch-size" in change.traits:
        traits = traits - {"batch-size"} | {"samples"}
    if symbol in ("+", "-") and number_of(change) is not None and all(not loop.known for loop in machine.loops[-1:]):
        traits = traits | {"count"}
        if isinstance(before, Constant) and any(loop.turn > 1 for loop in machine.loops[:-1]):
            traits = traits | {"restarted"}
    elif all(loop.known for loop in machine.loops):
        return result
    what = "counter" if number_of(change) is not None else "sum"
    traits = traits | OF_TURNS if symbol == "+" and adds_turns(machine, change) else traits
    key = (what, node.lineno, node.col_offset, tuple(loop.turn for loop in machine.loops), machine.clock)
    found = Unknown(key, traits | {"summed"}, plain=True)
    found.cuts = before.cuts | change.cuts
    found.by_one = symbol == "+" and number_of(change) == 1
    found.answers = before.answers | change.answers
    found.counted_from = (before.counted_from or before) if isinstance(before, Unknown) else None
    return found


def _delete(machine: Machine, node: ast.Delete, scope: Scope) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            scope.names.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            holder = evaluate(machine, target.value, scope)
            if isinstance(holder, Sequence):
                machine.emit(Emptied(machine.where(target), holder))
                if isinstance(target.slice, ast.Slice):
                    holder.items.clear()
                else:
                    holder.more = True
            elif isinstance(holder, Mapping):
                if holder.loaded is not None:
                    machine.emit(LoadedUsed(machine.where(target), holder.loaded, None, "del"))
                index = evaluate(machine, target.slice, scope)
                if isinstance(index, Constant):
                    holder.items.pop(index.value, None)
                else:
                    machine.emit(Emptied(machine.where(target), holder))  # of one entry, whichever
            elif isinstance(holder, Instance) and holder.kind == "namespace":
                holder.attributes.pop(text_of(evaluate(machine, target.slice, scope)) or "", None)
        elif isinstance(target, ast.Attribute):
            holder = evaluate(machine, target.value, scope)
            if isinstance(holder, Instance):
                holder.attributes.pop(target.attr, None)
            elif isinstance(holder, Tensor):  # `del parameter.grad`: it has none from here on
                machine.models.set_attribute(machine, holder, target.attr, NONE, target)


def _return(machine: Machine, node: ast.Return, scope: Scope) -> None:
    value = evaluate(machine, node.value, scope) if node.value is not None else NONE
    if machine.conditions:
        machine.emit(Left(machine.where(node), "return"))
    raise Returned(value, machine.site(node.value or node))


def _raise(machine: Machine, node: ast.Raise, scope: Scope) -> None:
    raise Raised(evaluate(machine, node.exc, scope) if node.exc is not None else Unknown())


def _break(machine: Machine, node: ast.Break, _: Scope) -> None:
    machine.emit(Left(machine.where(node), "break"))
    raise LeaveLoop


def _continue(machine: Machine, node: ast.Continue, _: Scope) -> None:
    machine.emit(Left(machine.where(node), "continue"))
    raise NextTurn


def _global(_: Machine, node: ast.Global, scope: Scope) -> None:
    scope.elsewhere.update(dict.fromkeys(node.names, "global"))


def _nonlocal(_: Machine, node: ast.Nonlocal, scope: Scope) -> None:
    scope.elsewhere.update(dict.fromkeys(node.names, "nonlocal"))


def _assert(machine: Machine, node: ast.Assert, scope: Scope) -> None:
    value = evaluate(machine, node.test, scope)
    if isinstance(node.test, ast.Constant) and not node.test.value:
        raise Raised(Library("builtins.AssertionError"))
    if machine.truth(value) is None:  # what a program asserts is so, whatever arguments an entry is assumed to get
        machine.suppose(value)
    narrow(machine, node.test, True, scope)


SIMPLE.update(
    {
        ast.Expr: _expression,
        ast.Assign: _assign,
        ast.AnnAssign: _annotated,
        ast.AugAssign: _update,
        ast.Delete: _delete,
        ast.Return: _return,
        ast.Raise: _raise,
        ast.Break: _break,
        ast.Continue: _continue,
        ast.Global: _global,
        ast.Nonlocal: _nonlocal,
        ast.Assert: _assert,
        ast.Import: import_module,
        ast.ImportFrom: import_from,
    }
)
