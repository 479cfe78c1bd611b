from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Appended, Called, SplitDrawn, Stepped
from lightlint.values.core import Class, Function, Sequence, Unknown, Value
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site

_DEPTH = 4
_MESSAGE = "windows that begin one step apart (line {}) are split at random: those held out share all but a few of their steps with those trained on"


class WindowsSplitAtRandom(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Random splits of windows of one series, each of which begins one step behind the one before."""
        if not any(path.of(Stepped) for path in entry.paths):
            return
        for path in entry.paths:
            for split in path.of(SplitDrawn):
                row = _row_of_windows(path, split.data[0]) if split.data and not _in_order(path, split) else None
                if row is not None:
                    yield Fault.at(split, _MESSAGE.format(row))


def _in_order(path: Path, split: SplitDrawn) -> bool:
    """Whether `train_test_split` is told whether to shuffle, or by which groups or classes."""
    calls = [each for each in path.of(Called) if each.site == split.site and each.name == split.name]
    return any(each.argument(word) is not None for each in calls for word in ("shuffle", "stratify"))


def _row_of_windows(path: Path, data: Value) -> int | None:
    if isinstance(data, Instance):
        found = data.cls.find("__getitem__") if isinstance(data.cls, Class) else None
        node = found.node if isinstance(found, Function) else None
        if isinstance(node, ast.FunctionDef) and len(node.args.args) > 1:
            return _window_in(node, node.args.args[1].arg, node)
        return None
    for each in _origins(data):
        if isinstance(each, Sequence):
            sites = [event.site for event in path.of(Appended) if event.container is each]
            rows = [_row_at(path, site) for site in (*sites[:1], each.site) if site is not None]
            if any(row is not None for row in rows):
                return next(row for row in rows if row is not None)
    return None


def _origins(value: Value, depth: int = 0) -> Iterator[Value]:
    """A value and what it was made of by calls that only put it into another form."""
    yield value
    if isinstance(value, Unknown) and depth < _DEPTH:
        for each in (*value.lent, *([] if value.given_by is None else [value.given_by])):
            yield from _origins(each, depth + 1)


def _row_at(path: Path, site: Site) -> int | None:
    """Where, in a comprehension or a loop around what is added at a place, windows are cut."""
    tree = path.machine.sources.tree(site[0])
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ListComp) and node.lineno == site[1] and node.col_offset == site[2]:
            name = _counter(node.generators[0].target, node.generators[0].iter) if len(node.generators) == 1 else ""
            return _window_in(node.elt, name, node) if name else None
        if isinstance(node, ast.For) and node.lineno <= site[1] <= (node.end_lineno or 0):
            name = _counter(node.target, node.iter)
            calls = (each for each in ast.walk(node) if isinstance(each, ast.Call))
            added = next((each for each in calls if (each.lineno, each.col_offset) == site[1:3]), None)
            row = _window_in(added, name, node) if name and added is not None else None
            if row is not None:
                return row
    return None


def _counter(target: ast.expr, over: ast.expr) -> str:
    """The name that counts up by one, "" for none."""
    plain = isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "range"
    return (
        target.id
        if plain and isinstance(target, ast.Name) and isinstance(over, ast.Call) and len(over.args) < 3
        else ""
    )


def _window_in(node: ast.AST, name: str, around: ast.AST) -> int | None:
    """The row of a slice from a number to some steps behind it, or from some steps before it; the end may have a name of its own."""
    named = {
        each.targets[0].id: each.value
        for each in ast.walk(around)
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name)
    }
    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
        node = named.get(node.args[0].id, node)
    for each in (one for one in ast.walk(node) if isinstance(one, ast.Subscript)):
        index = each.slice
        first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
        if isinstance(first, ast.Slice) and first.lower is not None and first.upper is not None and first.step is None:
            bounds = [
                named.get(one.id, one) if isinstance(one, ast.Name) else one for one in (first.lower, first.upper)
            ]
            if any(_is(one, name) for one in bounds) and any(_is_apart(one, name) for one in bounds):
                return each.lineno
    return None


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_apart(node: ast.expr, name: str) -> bool:
    """Whether it is more than one step from a number."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub)):
        return False
    one = isinstance(node.right, ast.Constant) and node.right.value in (0, 1)
    return not one and (
        _is(node.left, name) or (isinstance(node.op, ast.Add) and _is(node.right, name)) or _is_apart(node.left, name)
    )
