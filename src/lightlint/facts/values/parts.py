"""What objects of this file's classes keep in their attributes, as their classes set them."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from lightlint.facts.code.bindings import Kind, unpacked
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.objects.classes import Classes
from lightlint.facts.values.origins import SAME_OBJECT, keeps_object

Source = tuple[cst.BaseExpression | None, tuple[int, ...]]  # a value, and which part of it; None for one out of sight


class Parts:
    """The attributes of the objects of one file's classes."""

    def __init__(self, tree: Tree, names: Names, classes: Classes) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes

    def of_self(self, node: cst.ClassDef, attribute: str) -> list[Source]:
        """What a class and those above it in this file set `self.attribute` to, besides what it holds already."""
        line = self._classes.line(node)
        found = [source for each in line for source in self._classes.attribute_sources(each, attribute)]
        return [(value, path) for value, path in found if path or not self._renews(value, attribute)]

    def of_object(self, node: cst.ClassDef, attribute: str) -> list[Source]:
        """As `of_self`, for an object made of a class in plain sight; empty where more than the class may set it."""
        dressed = [self._dressed(each) for each in node.decorators]
        if (
            not self._classes.complete(node)
            or self.is_set_outside(attribute)
            or self._classes.has_method(node, attribute)
        ):
            return []
        sources = self.of_self(node, attribute)
        for each in dressed:
            if each is None:
                return []
            sources += self._classes.attribute_sources(each, attribute)
        return sources

    def may_give_itself(self, method: str) -> bool:
        """Whether a method of that name may give the object itself back: one of torch's, or of a class of this file."""
        return method in SAME_OBJECT or method in self._fluent

    def gives_itself(self, name: str, method: str) -> bool:
        """Whether a method of a class, by its name, surely does: each way out of it returns `self`."""
        node = self._classes.local(name)
        own = self._classes.method(node, method) if node is not None else None
        return method in SAME_OBJECT if own is None else own in self._fluent.get(method, ())

    @cached_property
    def _fluent(self) -> dict[str, list[cst.FunctionDef]]:
        """The methods of this file, by name, that return nothing but `self`, at their end, too."""
        found: dict[str, list[cst.FunctionDef]] = {}
        for function in self._tree.all(cst.FunctionDef):
            last = function.body.body[-1] if isinstance(function.body, cst.IndentedBlock) else None
            ends = isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Return)
            plain = (
                not function.decorators and function.asynchronous is None and not self._tree.own(function, cst.Yield)
            )
            if ends and plain and self._tree.class_of(function) is not None:
                returned = [each.value for each in self._tree.own(function.body, cst.Return)]
                if all(each is not None and self._classes.is_self(each) for each in returned):
                    found.setdefault(function.name.value, []).append(function)
        return found

    def may_keep(self, attribute: str) -> bool:
        """Whether any code of this file sets an attribute of that name."""
        return attribute in self._set

    def is_set_outside(self, attribute: str) -> bool:
        """Whether something but an object itself sets an attribute of that name: `net.optim = other`."""
        return not all(self._classes.is_self(each.value) for each in self._set.get(attribute, ()))

    def _renews(self, value: cst.CSTNode | None, attribute: str) -> bool:
        """Whether an attribute gets what it holds already: `self.net = self.net.to(device)`."""
        if not keeps_object(value):
            return False
        while isinstance(value, cst.Call) and keeps_object(value):
            value = value.func.value if isinstance(value.func, cst.Attribute) else None
        return isinstance(value, cst.Attribute) and value.attr.value == attribute and self._classes.is_self(value.value)

    @cached_property
    def _set(self) -> dict[str, list[cst.Attribute]]:
        found: dict[str, list[cst.Attribute]] = {}
        for node in [*self._tree.all(cst.AssignTarget), *self._tree.all(cst.AnnAssign, cst.AugAssign)]:
            for target, _, _ in unpacked(node.target, None):
                if isinstance(target, cst.Attribute):
                    found.setdefault(target.attr.value, []).append(target)
        return found

    def _dressed(self, decorator: cst.Decorator) -> cst.ClassDef | None:
        """The class that a function of this file makes of the one it decorates, and derives from it."""
        name = decorator.decorator
        bound = self._names.bindings.lookup(name) if isinstance(name, cst.Name) else []
        function = bound[0].site if len(bound) == 1 and bound[0].kind is Kind.FUNCTION else None
        if not isinstance(function, cst.FunctionDef) or len(function.params.params) != 1:
            return None
        made = self._tree.own(function.body, cst.ClassDef)
        returns = self._tree.own(function.body, cst.Return)
        given = function.params.params[0].name.value
        returned = [each.value.value for each in returns if isinstance(each.value, cst.Name)]
        if len(made) != 1 or len(made[0].bases) != 1 or returned != [made[0].name.value] or len(returns) != 1:
            return None
        base = made[0].bases[0].value
        return made[0] if isinstance(base, cst.Name) and base.value == given else None
