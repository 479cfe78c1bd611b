"""Which numbers surely count batches: products of the length of a DataLoader, also as a module is given them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 8
_SAME = {"builtins.int", "builtins.float", "builtins.round"}


class BatchCounts:
    """The numbers of batches in one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names

    def counts(self, value: cst.CSTNode | None, depth: int = 0) -> bool:
        """Whether a value surely is a number of batches, times a number of epochs or a share of them at most."""
        if value is None or depth > _DEPTH:
            return False
        match value:
            case cst.Call(args=[cst.Arg(keyword=None, value=given), *_]):
                name = self._names.call(value)
                if name == "builtins.len":
                    return self._facts.values.is_loader(given)
                return name in _SAME and self.counts(given, depth + 1)
            case cst.BinaryOperation(operator=cst.Multiply(), left=left, right=right):
                pairs = ((left, right), (right, left))
                return any(self.counts(one, depth + 1) and self._is_plain(other) for one, other in pairs)
            case cst.Name():
                found = self._names.bindings.lookup(value)
                return len(found) == 1 and self._is_bound(found[0], depth)
            case cst.Attribute():
                return self._is_kept(value, depth)
        return False

    def _is_plain(self, factor: cst.BaseExpression) -> bool:
        """Whether a factor is no number of steps that each batch makes: `2 * epochs * len(loader)` counts steps."""
        spelled = self._names.key(factor).lower()
        return isinstance(factor, (cst.Name, cst.Attribute)) and not any(word in spelled for word in ("opt", "step"))

    def _is_bound(self, binding: Binding, depth: int) -> bool:
        if binding.kind is Kind.ASSIGN and not binding.path:
            return self.counts(binding.value, depth + 1)
        function = binding.scope
        if binding.kind is not Kind.PARAMETER or not isinstance(function, cst.FunctionDef):
            return False
        calls = (*self._facts.hooks.calls_of.get(function, ()), *self._facts.hooks.constructions.get(function, ()))
        given = [self._facts.values.given(function, call, binding.name) for call in calls]
        return bool(given) and all(self.counts(each, depth + 1) for each in given)

    def _is_kept(self, attribute: cst.Attribute, depth: int) -> bool:
        """Whether a module keeps such a number: in an attribute, or as a hyperparameter."""
        if self._names.key(attribute) == "self.trainer.num_training_batches":
            return True
        name, room = attribute.attr.value, attribute.value
        node = self._facts.classes.self_class(room)
        if node is not None:
            values = self._facts.classes.attribute_values(node, name)
            return len(values) == 1 and self.counts(values[0], depth + 1)
        owner = self._facts.tree.enclosing_class(attribute) if self._names.key(room) == "self.hparams" else None
        init = self._facts.classes.method(owner, "__init__") if owner is not None else None
        found = self._names.bindings.lookup_in(name, init) if init is not None else []
        return len(found) == 1 and self._is_bound(found[0], depth)
