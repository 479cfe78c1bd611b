"""Which of a name's bindings its value at one place can come from."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.flow import Flow
from lightlint.facts.code.last_events import LastEvents
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree

_DEPTH = 8


class Reaching:
    """Reaching definitions of the local names of one file."""

    def __init__(self, tree: Tree, names: Names, flow: Callable[[cst.FunctionDef | cst.Module], Flow]) -> None:
        self._tree = tree
        self._names = names
        self._flow = flow
        self._known: dict[int, list[Binding]] = {}
        self._last: dict[tuple[int, str], LastEvents] = {}  # by body and name

    def bindings(self, name: cst.Name) -> list[Binding]:
        """The bindings that a use of a name can see: all of them for a name of another scope."""
        if id(name) not in self._known:
            self._known[id(name)] = self._bindings(name)
        return self._known[id(name)]

    def _bindings(self, name: cst.Name) -> list[Binding]:
        found = self._names.bindings.lookup(name)
        owner = self._tree.owner(name)
        if len(found) < 2 or any(each.scope is not owner for each in found):
            return found
        flow = self._flow(owner)
        if flow.point_of(name) is None:
            return found
        key = id(owner), name.value
        if key not in self._last:
            self._last[key] = LastEvents(flow, [flow.start if b.kind is Kind.PARAMETER else b.site for b in found])
        reaching = [found[number] for number in self._last[key].before(name)]
        return reaching or found

    def sources(self, expression: cst.BaseExpression, depth: int = 0) -> list[cst.BaseExpression]:
        """The expressions that an expression's value can come from, through names and conditional expressions.

        A name whose value is out of sight (a parameter, a loop variable, a part of a tuple) stands for itself.
        """
        if depth > _DEPTH:
            return [expression]
        if isinstance(expression, cst.IfExp):
            arms = (expression.body, expression.orelse)
            return [source for arm in arms for source in self.sources(arm, depth + 1)]
        if isinstance(expression, cst.NamedExpr):
            return self.sources(expression.value, depth + 1)
        if isinstance(expression, cst.Name):
            found = self.bindings(expression)
            if found and all(each.kind is Kind.ASSIGN and each.value and not each.path for each in found):
                return [source for each in found if each.value for source in self.sources(each.value, depth + 1)]
        return [expression]
