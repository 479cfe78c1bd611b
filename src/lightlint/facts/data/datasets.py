"""Which data set classes of a file the workers of its DataLoaders draw from."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.data.workers import LOADER, Workers
from lightlint.facts.project.options import option_default

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_SPLIT = "torch.utils.data.random_split"
_HOLDS = {f"torch.utils.data.{name}" for name in ("Subset", "ConcatDataset", "ChainDataset", "StackDataset")} | {_SPLIT}
_DEPTH = 5


class Datasets:
    """The loaders of one file by what they draw from."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._names = facts.names
        self._classes = facts.classes

    @cached_property
    def loaders(self) -> tuple[cst.Call, ...]:
        """The calls that make a DataLoader."""
        return tuple(each for each in self._facts.tree.all(cst.Call) if self._names.call(each) == LOADER)

    @cached_property
    def _drawn(self) -> dict[cst.Call, frozenset[cst.ClassDef]]:
        found = {}
        for loader in self.loaders:
            nodes = map(self._classes.local, self.names_of(loader))
            found[loader] = frozenset(node for node in nodes if node is not None)
        return found

    def names_of(self, loader: cst.Call) -> frozenset[str]:
        """Canonical names of the classes that a loader's data set is made of, those of other files, too."""
        given = self._names.argument(loader, "dataset", 0)
        return frozenset(self._inside(given.value, 0)) if given is not None else frozenset()

    def never_ends(self, loader: cst.Call) -> bool:
        """Whether a loader draws from streams alone that go on for ever, so that its one epoch has no end."""
        found = self._drawn.get(loader, frozenset())
        return bool(found) and all(map(self._is_endless, found))

    def _is_endless(self, node: cst.ClassDef) -> bool:
        stream, tree = self._classes.method(node, "__iter__"), self._facts.tree
        loops = tree.within(stream, cst.While) if stream is not None else ()
        return any(
            self._names.constant(loop.test) == 1
            and bool(tree.within(loop, cst.Yield))
            and not tree.within(loop, cst.Break, cst.Return)
            for loop in loops
        )

    def workers(self, loader: cst.Call) -> object:
        """The number of workers of a loader: as written, else that of a program started without arguments."""
        count = self._facts.fact(Workers).count(loader)
        given = self._facts.fact(Workers).given(loader, "num_workers", 5)
        if count is not UNKNOWN or len(given.values) != 1 or not given.always:
            return count
        return self._unless_told(given.values[0], 0)

    def _unless_told(self, value: cst.BaseExpression, depth: int) -> object:
        """What a value is without arguments on the command line: an option's default, or what all calls give for a parameter."""
        known = self.number(value)
        if known is UNKNOWN:
            known = option_default(self._facts.tree, self._names, value)
        function = self._function_of(value)
        if known is not UNKNOWN or function is None or not isinstance(value, cst.Name) or depth > _DEPTH:
            return known
        calls = self._facts.hooks.calls_of.get(function, ())
        given = [self._facts.values.given(function, call, value.value) for call in calls]
        found = [UNKNOWN if each is None else self._unless_told(each, depth + 1) for each in given]
        return found[0] if found and all(each == found[0] for each in found) else UNKNOWN

    def number(self, value: cst.BaseExpression) -> object:
        """A constant, also the default of a parameter that no call in sight gives."""
        constant = self._names.constant(value)
        return constant if constant is not UNKNOWN else self._by_default(value)

    def _by_default(self, value: cst.BaseExpression) -> object:
        """The default of the parameter that a value is, where no call in sight gives it."""
        function = self._function_of(value)
        if function is None or not isinstance(value, cst.Name):
            return UNKNOWN
        (parameter,) = self._names.bindings.lookup(value)
        calls = self._facts.hooks.calls_of.get(function, ())
        given = [self._facts.values.given(function, call, parameter.name) for call in calls]
        silent = bool(calls) and all(each is None for each in given) and not any(map(self._names.has_star, calls))
        return self._names.constant(parameter.value) if silent else UNKNOWN

    def _function_of(self, value: cst.BaseExpression) -> cst.FunctionDef | None:
        """The function that a value is a parameter of, and stays one."""
        found = self._names.bindings.lookup(value) if isinstance(value, cst.Name) else []
        scope = found[0].scope if len(found) == 1 and found[0].kind is Kind.PARAMETER else None
        return scope if isinstance(scope, cst.FunctionDef) else None

    def _inside(self, expression: cst.CSTNode | None, depth: int) -> set[str]:
        if depth > _DEPTH or expression is None:
            return set()
        if isinstance(expression, (cst.List, cst.Tuple)):
            return {name for item in expression.elements for name in self._inside(item.value, depth + 1)}
        if isinstance(expression, cst.Name):
            split = [
                each.value
                for each in self._names.bindings.lookup(expression)
                if each.kind is Kind.ASSIGN and each.path and self._names.call(each.value) == _SPLIT
            ]
            if split:
                return {name for value in split for name in self._inside(value, depth + 1)}
        found: set[str] = set()
        calls = [expression] if self._names.call(expression) == _SPLIT else []
        for origin in self._facts.values.origins(expression):
            found.add(origin.name)
            calls += [origin.call] if origin.call is not None and origin.name in _HOLDS else []
        for call in calls:
            if isinstance(call, cst.Call) and call.args:
                found |= self._inside(call.args[0].value, depth + 1)
        return found
