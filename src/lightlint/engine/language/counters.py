"""What counts turns, and what the turns of a loop add up."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lightlint.engine.frames import Loop
from lightlint.engine.machine import Machine
from lightlint.values.core import Constant, Unknown, Value, number_of
from lightlint.values.training import Tensor

_DEPTH, _SECOND = 6, 2


def note_added(machine: Machine, before: Value, total: Value, node: ast.AST) -> None:
    """Let a number know that a batch has added something to it."""
    loop = machine.loops[-1] if machine.loops else None
    if loop is not None and loop.kind == "batch" and isinstance(total, (Unknown, Tensor)):
        total.added = before.added | {(machine.site(node), loop, loop.turn)}


def is_same_place(one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions are the same name, or the same attribute of one."""
    match one, other:
        case ast.Name(id=first), ast.Name(id=second):
            return first == second
        case ast.Attribute(value=holder, attr=first), ast.Attribute(value=its, attr=second):
            return first == second and is_same_place(holder, its)
    return False


def added_up_in(value: Value) -> frozenset[Loop]:
    """The loops over batches of which each turn has added something to a number, or to what it is a written multiple of."""
    found = {(site, loop): turn for each in _multiples(value) for site, loop, turn in each.added}
    turns = [(site, loop) for each in _multiples(value) for site, loop, turn in each.added if turn != found[site, loop]]
    return frozenset(loop for _, loop in turns)


OF_TURNS = frozenset({"sum of turns"})  # the numbers of a loop's turns, added up: no count of them


def adds_turns(machine: Machine, change: Value) -> bool:
    """Whether what is added is the number of the present turn of a loop over batches."""
    loop = machine.loops[-1] if machine.loops else None
    numbers = isinstance(change.key, tuple) and change.key[:1] == ("index",) and change.key[1] == _line(loop)
    return loop is not None and loop.kind == "batch" and not loop.known and numbers


def _line(loop: Loop | None) -> int | None:
    """The line of a loop, by which the keys of its turns' numbers tell it."""
    return loop.site[1] if loop is not None else None


def miscounted(machine: Machine, loops: frozenset[Loop], count: Value, node: ast.AST) -> str:
    """What a number counts by which the sum over loops is divided, where that surely are not their turns: "epochs" or "numbers"."""
    if any(each in loops for each in machine.loops):
        return ""
    if count.traits >= OF_TURNS:
        return "numbers"
    around = machine.loops[-1] if machine.loops else None
    if around is None or around.kind != "count" or around.turn < _SECOND or around.bound is None:
        return ""
    inside = all(each.made > around.begun for each in loops)
    return "epochs" if inside and _is_bound(around, count, node) else ""


def _is_bound(loop: Loop, count: Value, node: ast.AST) -> bool:
    """Whether a number is the one of a loop's turns, and called so where it is known."""
    bound, divisor = loop.bound, node.right if isinstance(node, ast.BinOp) else getattr(node, "value", None)
    if bound is None or not isinstance(divisor, (ast.Name, ast.Attribute)) or not isinstance(loop.node, ast.For):
        return False
    called = ast.unparse(divisor).rpartition(".")[2] in ast.unparse(loop.node.iter)
    same = bound.key is not None and bound.key == count.key
    return same and (called or not isinstance(count, Constant))


def _multiples(value: Value, depth: int = 0) -> Iterator[Value]:
    yield value
    if depth > _DEPTH or value.added:
        return
    if isinstance(value, Tensor):
        below = value.seen_of or value.only_from
        if below is not None:
            yield from _multiples(below, depth + 1)
        return
    symbol, parts = value.terms or ("", ())
    if symbol in ("*", "/") and any(number_of(each) is not None for each in parts):
        for each in parts:
            yield from _multiples(each, depth + 1)


def counts_inside(node: ast.While) -> bool:
    """Whether a loop inside counts, and the `while` itself does not: `while step < most` around a loop whose batches are steps."""
    if not isinstance(node.test, ast.Compare):
        return False
    sides = {ast.unparse(each) for each in (node.test.left, *node.test.comparators)}
    nested: set[bool] = set()
    pending: list[tuple[ast.AST, bool]] = [(each, False) for each in node.body]
    while pending:
        part, inside = pending.pop()
        if _counted(part) in sides:
            nested.add(inside)
        inside |= isinstance(part, (ast.For, ast.AsyncFor, ast.While))
        pending += [(each, inside) for each in ast.iter_child_nodes(part) if not isinstance(each, ast.expr)]
    return nested == {True}


def _counted(statement: ast.AST) -> str:
    """What a statement counts on: `step += 1`, `step = step + 1`."""
    if isinstance(statement, ast.AugAssign):
        return ast.unparse(statement.target)
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp) and len(statement.targets) == 1:
        target = ast.unparse(statement.targets[0])
        return target if target in {ast.unparse(statement.value.left), ast.unparse(statement.value.right)} else ""
    return ""
