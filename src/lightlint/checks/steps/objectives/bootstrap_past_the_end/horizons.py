"""Environments of a program's own whose episodes are cut short after so many steps, and have no other end."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.explore.questions.accelerators import code_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_METHODS = {"reset", "step"}
_DEPTH = 3


def are_cut_short(entry: Entry) -> bool | None:
    """Whether all environments of a program's own only stop counting their steps, None where it has none."""
    classes = {node for path in entry.paths for node in code_of(path) if isinstance(node, ast.ClassDef)}
    found = [environment for node in classes if (environment := _Environment.of(node)) is not None]
    return all(each.is_cut_short() for each in found) if found else None


class _Environment:
    """A class with `reset` and `step`: what `step` gives behind the state and the reward says whether the episode is over."""

    def __init__(self, node: ast.ClassDef, step: ast.FunctionDef, ends: list[list[ast.expr]]) -> None:
        self._ends = ends
        self._counters = {name for name in map(_counted, step.body) if name}
        self._given: dict[str, list[ast.expr]] = {}
        own = {*ast.walk(step)}
        for each in ast.walk(node):
            for target, value in _assigned(each):
                name = ast.unparse(target)
                if name.startswith("self.") or each in own:
                    self._given.setdefault(name, []).append(value)

    @classmethod
    def of(cls, node: ast.ClassDef) -> _Environment | None:
        """A class as an environment, None where its `step` gives no state, reward and end."""
        methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
        if not methods.keys() >= _METHODS:
            return None
        given = [each.value for each in ast.walk(methods["step"]) if isinstance(each, ast.Return)]
        ends = [each.elts[2:] for each in given if isinstance(each, ast.Tuple)]
        return cls(node, methods["step"], ends) if given and len(ends) == len(given) and all(ends) else None

    def is_cut_short(self) -> bool:
        """Whether a count of steps ends its episodes, and nothing else."""
        plain = all(self._is_plain(each) for row in self._ends for each in row)
        return plain and any(self._is_cut(each) for row in self._ends for each in row)

    def _is_plain(self, value: ast.expr, depth: int = 0) -> bool:
        """Whether a value says nothing of an end, or that the steps have run out."""
        if isinstance(value, ast.Dict) or (isinstance(value, ast.Constant) and not value.value):
            return True
        given = self._values(value, depth)
        return self._is_cut(value, depth) or (bool(given) and all(self._is_plain(each, depth + 1) for each in given))

    def _is_cut(self, value: ast.expr, depth: int = 0) -> bool:
        """Whether a value says that the steps have run out: `self.steps >= self.horizon`."""
        match value:
            case ast.Compare(left=left, comparators=[right]):
                return any(ast.unparse(each) in self._counters for each in (left, right))
            case ast.Call(func=ast.Name(id="bool"), args=[inner], keywords=[]):
                return self._is_cut(inner, depth)
        given = self._values(value, depth)
        cut = [each for each in given if self._is_cut(each, depth + 1)]
        return bool(cut) and all(each in cut or self._is_plain(each, depth + 1) for each in given)

    def _values(self, value: ast.expr, depth: int) -> list[ast.expr]:
        """What a name or an attribute is set to."""
        named = isinstance(value, (ast.Name, ast.Attribute)) and depth < _DEPTH
        return self._given.get(ast.unparse(value), []) if named else []


def _counted(node: ast.stmt) -> str:
    """What goes up or down by a number with each step: `self.steps += 1`."""
    match node:
        case ast.AugAssign(target=target, op=ast.Add() | ast.Sub(), value=ast.Constant(value=int())):
            return ast.unparse(target)
        case ast.Assign(
            targets=[target], value=ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=int()))
        ) if ast.unparse(target) == ast.unparse(left):
            return ast.unparse(target)
    return ""


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment with what each is given; what changes one otherwise stands for itself."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                    yield from zip(target.elts, value.elts, strict=False)
                elif isinstance(target, ast.Tuple):
                    yield from ((each, value) for each in target.elts)
                else:
                    yield target, value
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
            yield target, value
