"""Attributes of `self` that surely hold tensors: by what a class says of its fields, or by all that it sets them to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.objects.annotations import annotated
from lightlint.facts.project.mentions import occurs
from lightlint.facts.tensors.computed import Computed

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_TENSOR = "torch.Tensor"
_TUPLE = ("typing.NamedTuple", "builtins.tuple")


class Fields:
    """The tensors that objects of the classes of one file hold under a name."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._classes = facts.classes

    def is_tensor(self, attribute: cst.Attribute) -> bool:
        """Whether `self.x` surely is a tensor."""
        node, name = self._classes.self_class(attribute.value), attribute.attr.value
        if node is None:
            return False
        promises = [each for one in self._classes.line(node) for each in self._promises(one, name)]
        if promises:
            return all(annotated(self._names, each.annotation.annotation, one) == _TENSOR for each, one in promises)
        sources = [each for one in self._classes.line(node) for each in self._classes.attribute_sources(one, name)]
        new = [(value, path) for value, path in sources if not self._is_renewed(value, name)]
        return bool(new) and self._classes.complete(node) and all(self._is_set(value, path) for value, path in new)

    def is_read_besides(self, attribute: cst.Attribute) -> bool:
        """Whether something reads the attribute, here or elsewhere, but statements that drop what a method of it gives."""
        name = attribute.attr.value
        here = (each for each in self._tree.all(cst.Attribute) if each.attr.value == name)
        return any(self._is_read(each) for each in here) or occurs(
            self._facts.project, name, rf"\.{name}\b", self._facts.path.absolute()
        )

    def may_be_set(self, attribute: cst.Attribute) -> bool:
        """Whether the class lets its attributes be set: no named tuple, no frozen dataclass."""
        node = self._classes.self_class(attribute.value)
        if node is None or self._classes.is_a(node, *_TUPLE):
            return False
        made = [each.decorator for each in node.decorators if isinstance(each.decorator, cst.Call)]
        return not any(self._names.argument(each, "frozen") for each in made)

    def _promises(self, node: cst.ClassDef, name: str) -> list[tuple[cst.AnnAssign, cst.ClassDef]]:
        """What the body of a class says of a field."""
        lines = [line for line in node.body.body if isinstance(line, cst.SimpleStatementLine)]
        said = [each for line in lines for each in line.body if isinstance(each, cst.AnnAssign)]
        return [(each, node) for each in said if isinstance(each.target, cst.Name) and each.target.value == name]

    def _is_renewed(self, value: cst.BaseExpression | None, name: str) -> bool:
        """Whether a value is made of what the attribute held: `self.x = self.x.float()`."""
        func = value.func if isinstance(value, cst.Call) else None
        held = func.value if isinstance(func, cst.Attribute) else None
        return isinstance(held, cst.Attribute) and held.attr.value == name and self._classes.is_self(held.value)

    def _is_set(self, value: cst.BaseExpression | None, path: tuple[int, ...]) -> bool:
        if self._facts.fact(Computed).is_tensor(value, path):
            return True
        bound = self._names.bindings.lookup(value) if isinstance(value, cst.Name) and not path else []
        function = bound[0].scope if len(bound) == 1 and bound[0].kind is Kind.PARAMETER else None
        if not isinstance(function, cst.FunctionDef):
            return False
        if bound[0].annotation is not None:
            return annotated(self._names, bound[0].annotation, self._tree.scope(function)) == _TENSOR
        calls = self._facts.hooks.constructions.get(function, ())
        given = [self._facts.values.given(function, each, bound[0].name) for each in calls]
        return bool(given) and all(self._facts.fact(Computed).is_tensor(each) for each in given)

    def _is_read(self, attribute: cst.Attribute) -> bool:
        above = self._tree.parent(attribute)
        call = self._tree.parent(above) if isinstance(above, cst.Attribute) else None
        dropped = isinstance(call, cst.Call) and isinstance(self._tree.parent(call), cst.Expr)
        return not dropped and not isinstance(above, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign))
