"""What is done with the value of a `torch.load`: where it, and what lies in it, is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

LOAD = "torch.load"
SAVE = "torch.save"

Held = tuple[cst.Call, tuple[str, ...]]  # a load, and the keys under which a value lies in what it gives

_SAME_OBJECT = {"to", "cuda", "cpu", "float", "half", "eval", "train"}
_ASKS_KIND = {"builtins.isinstance", "builtins.hasattr", "builtins.type", "builtins.callable"}
_DEPTH = 6


class Checkpoints:
    """The files of torch that one file loads."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._names = facts.names
        self._tree = facts.tree

    def held(self, expression: cst.CSTNode | None, depth: int = 0) -> Held | None:
        """The one load an expression surely comes from, with the keys on the way: `torch.load(p)["args"]` is `("args",)`."""
        if depth > _DEPTH:
            return None
        match expression:
            case cst.Call() if self._names.call(expression) == LOAD:
                return expression, ()
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value="get"))) if expression.args:
                return self._item(receiver, expression.args[0].value, depth)
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))) if method in _SAME_OBJECT:
                return self.held(receiver, depth + 1)
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
                return self._item(expression.value, key, depth)
            case cst.Name():
                found = self._facts.reaching.bindings(expression)
                plain = all(each.kind is Kind.ASSIGN and not each.path for each in found)
                return self._one([each.value for each in found], depth) if plain else None
            case cst.Attribute():
                node = self._facts.classes.self_class(expression.value)
                sources = self._facts.classes.attribute_sources(node, expression.attr.value) if node is not None else []
                plain = all(not path for _, path in sources)
                return self._one([value for value, _ in sources], depth) if plain else None
        return None

    def _item(self, holder: cst.CSTNode, key: cst.CSTNode, depth: int) -> Held | None:
        name, held = self._names.constant(key), self.held(holder, depth + 1)
        return (held[0], (*held[1], name)) if held is not None and isinstance(name, str) else None

    def _one(self, values: list[cst.BaseExpression | None], depth: int) -> Held | None:
        found = {self.held(value, depth + 1) for value in values}
        return found.pop() if len(found) == 1 else None

    def uses(self, load: cst.Call) -> Iterator[tuple[cst.Attribute | cst.Call, tuple[str, ...]]]:
        """What is done with what a load gives, with the keys: attributes taken of it, and calls of it.

        Uses under a test of what it is are left out.
        """
        for node in self._tree.all(cst.Attribute, cst.Call):
            base = node.value if isinstance(node, cst.Attribute) else node.func
            held = self.held(base)
            if held is not None and held[0] is load and not self._is_asked(node):
                yield node, held[1]

    def _is_asked(self, node: cst.CSTNode) -> bool:
        tests = [test for test, _ in self._facts.conditions(node)]
        return any(self._names.call(call) in _ASKS_KIND for test in tests for call in self._tree.within(test, cst.Call))
