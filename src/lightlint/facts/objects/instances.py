"""Which functions of one file a call runs, methods of the objects that the file makes among them."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import cast

import libcst as cst

from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.objects.classes import Classes
from lightlint.facts.values.values import Values

_NOT_ASKED = object()
_PROPERTIES = {"builtins.property", "functools.cached_property"}


class Instances:
    """Calls of one file's functions, through its instances, too."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, hooks: Hooks, values: Values) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._hooks = hooks
        self._values = values
        self._callees: dict[int, object] = {}  # by `id`, which costs less than libcst's hash of a node

    def callee(self, call: cst.Call) -> cst.FunctionDef | None:
        """As `hooks.callee`, and methods of this file's classes called on their instances: `agent.update()`."""
        known = self._callees.get(id(call), _NOT_ASKED)
        if known is _NOT_ASKED:
            known = self._callees[id(call)] = self._callee(call)
        return cast("cst.FunctionDef | None", known)

    def _callee(self, call: cst.Call) -> cst.FunctionDef | None:
        found = self._hooks.callee(call)
        return found if found is not None or not isinstance(call.func, cst.Attribute) else self._member(call.func)

    def read(self, attribute: cst.Attribute) -> cst.FunctionDef | None:
        """The property of this file's classes that an attribute of an instance is: `dist.is_main` where `dist = Dist()`."""
        method = self._member(attribute)
        decorators = method.decorators if method is not None else ()
        return method if any(self._names.of(each.decorator) in _PROPERTIES for each in decorators) else None

    def _member(self, attribute: cst.Attribute) -> cst.FunctionDef | None:
        """The method that an attribute of an instance is."""
        if attribute.attr.value not in self._methods:
            return None
        origin = self._values.constructor(attribute.value)
        node = self._classes.local(origin.name) if origin else None
        return self._classes.method(node, attribute.attr.value) if node is not None else None

    @cached_property
    def _methods(self) -> frozenset[str]:
        return frozenset(
            function.name.value for function in self._tree.all(cst.FunctionDef) if self._tree.class_of(function)
        )

    @cached_property
    def calls_of(self) -> dict[cst.FunctionDef, tuple[cst.Call, ...]]:
        """Every call of a function of this file that `callee` knows."""
        table: dict[cst.FunctionDef, list[cst.Call]] = defaultdict(list)
        for call in self._tree.all(cst.Call):
            callee = self.callee(call)
            if callee is not None:
                table[callee].append(call)
        return {function: tuple(calls) for function, calls in table.items()}
