"""Which names hold one module: assigned twice, under a second name, as a shallow copy, twice in one list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.objects.annotations import is_none
from lightlint.facts.values.values import SAME_OBJECT

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 6

Source = tuple[cst.BaseExpression, tuple[int, ...]]
"""A value, and which part of it."""
Pair = tuple[cst.BaseExpression, cst.BaseExpression]


class Twins:
    """What the names of modules of one file stand for, where each is given one thing for good."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._classes = facts.classes

    def same(self, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        """Whether two expressions surely stand for one module, or for two that share their parameters."""
        root = self.root(one)
        return root is not None and root == self.root(other)

    def root(self, value: cst.BaseExpression, path: tuple[int, ...] = (), depth: int = 0) -> tuple[int, ...] | None:
        """What `value[path]` surely is, by identity: the call that makes it, or the parameter that brings it."""
        if depth > _DEPTH:
            return None
        value = self.stripped(value) if not path else value
        match value:
            case cst.Name() | cst.Attribute():
                parameter = self.parameter(value)
                if parameter is not None:
                    return (id(parameter),) if not path else None
                only = self.source(value)
                return self.root(only[0], (*only[1], *path), depth + 1) if only is not None else None
            case cst.Tuple() | cst.List() if path:
                plain = all(isinstance(each, cst.Element) for each in value.elements)
                inside = plain and 0 <= path[0] < len(value.elements)
                return self.root(value.elements[path[0]].value, path[1:], depth + 1) if inside else None
            case cst.BinaryOperation(operator=cst.Multiply(), left=cst.List(elements=[cst.Element(value=item)])) if (
                path
            ):
                return self.root(item, path[1:], depth + 1)
            case cst.Call():
                return self._of_call(value, path, depth)
        return None

    def _of_call(self, call: cst.Call, path: tuple[int, ...], depth: int) -> tuple[int, ...] | None:
        function = self._facts.hooks.callee(call)
        if function is None or not path:
            return (id(call),) if not path else None
        returns = self._facts.values.returns(function)
        value = returns[0] if len(returns) == 1 and not function.decorators else None
        inner = self.root(value, path, depth + 1) if value is not None else None
        return (id(call), *inner) if inner is not None else None

    def stripped(self, value: cst.BaseExpression) -> cst.BaseExpression:
        """The module of `model.to(device)` and of `copy.copy(model)`, whose parameters are those of the model."""
        while isinstance(value, cst.Call):
            if isinstance(value.func, cst.Attribute) and value.func.attr.value in SAME_OBJECT:
                value = value.func.value
            elif self._names.call(value) == "copy.copy" and len(value.args) == 1:
                value = value.args[0].value
            else:
                break
        return value

    def parameter(self, value: cst.BaseExpression) -> cst.CSTNode | None:
        """The parameter that a name stands for, and nothing else."""
        found = self._facts.reaching.bindings(value) if isinstance(value, cst.Name) else []
        return found[0].site if len(found) == 1 and found[0].kind is Kind.PARAMETER else None

    def source(self, value: cst.BaseExpression) -> Source | None:
        """The one thing that a name or an attribute of `self` is given, None if there are several or none in sight."""
        found = self.sources(value)
        return found[0] if found is not None and len(found) == 1 else None

    def sources(self, value: cst.BaseExpression) -> list[Source] | None:
        """All that a name or an attribute of `self` is given, but for None and itself; None if some is out of sight."""
        given: list[tuple[cst.BaseExpression | None, tuple[int, ...]]] = []
        if isinstance(value, cst.Name):
            bound = self._facts.reaching.bindings(value)
            given = [(each.value if each.kind is Kind.ASSIGN else None, each.path) for each in bound]
        elif isinstance(value, cst.Attribute):
            node = self._classes.self_class(value.value)
            if node is None or self._is_set_elsewhere(node, value.attr.value):
                return None
            line = self._classes.line(node)
            given = [each for above in line for each in self._classes.attribute_sources(above, value.attr.value)]
        key = self._names.key(value)
        kept = [
            (made, path)
            for made, path in given
            if made is None or not (is_none(made) or (not path and self._names.key(self.stripped(made)) == key))
        ]
        known = [(made, path) for made, path in kept if made is not None]
        return known if len(known) == len(kept) else None

    def _is_set_elsewhere(self, node: cst.ClassDef, attribute: str) -> bool:
        """Whether other code than a class's own and that above it may set its attribute."""
        own = set(self._classes.line(node))
        targets = (each.target for each in self._tree.all(cst.AssignTarget))
        set_to = (each for each in targets if isinstance(each, cst.Attribute) and each.attr.value == attribute)
        return any(self._classes.self_class(each.value) not in own for each in set_to)

    def pairs(self, one: cst.BaseExpression, other: cst.BaseExpression, depth: int = 0) -> Iterator[Pair]:
        """Two expressions of one place, where they are parameters as the calls give them, where they come in turn as
        a loop over pairs has them."""
        bound = [self._facts.reaching.bindings(each) if isinstance(each, cst.Name) else [] for each in (one, other)]
        first, second = (each[0] if len(each) == 1 else None for each in bound)
        if first is None or second is None or depth > 2 or first.scope is not second.scope:
            yield one, other
        elif first.kind is second.kind is Kind.PARAMETER and isinstance(first.scope, cst.FunctionDef):
            function = first.scope
            for call in self._facts.hooks.calls_of.get(function, ()):
                left, right = (self._facts.values.given(function, call, each.name) for each in (first, second))
                if left is not None and right is not None:
                    yield from self.pairs(left, right, depth + 1)
            yield one, other
        elif first.kind is second.kind is Kind.LOOP and first.value is second.value and len(first.path) == 1:
            shown = first.value.elements if isinstance(first.value, (cst.Tuple, cst.List)) else ()
            for item in (each.value for each in shown if isinstance(each.value, (cst.Tuple, cst.List))):
                if len(item.elements) > max(first.path[0], *second.path):
                    yield from self.pairs(
                        item.elements[first.path[0]].value, item.elements[second.path[0]].value, depth + 1
                    )
        else:
            yield one, other
