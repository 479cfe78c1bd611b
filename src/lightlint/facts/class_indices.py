"""Which values are the class indices that a classifying loss takes, and in which shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind

if TYPE_CHECKING:
    from lightlint.facts.criteria import Criterion
    from lightlint.facts.file import FileFacts

_CLASSIFYING = {"CrossEntropyLoss", "NLLLoss"}


class ClassIndices:
    """Class indices of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts

    def is_row(self, target: cst.BaseExpression) -> bool:
        """Whether a value surely is a row of class indices: the target of a classifying loss in the same function."""
        if isinstance(target, cst.Attribute) and target.attr.value == "data":
            target = target.value
        key = self._facts.names.key(target)
        if not key or not isinstance(target, (cst.Name, cst.Attribute)):
            return False
        losses = map(self._facts.criteria.of, self._facts.tree.own(self._facts.tree.owner(target), cst.Call))
        targets = [each.target for each in losses if each is not None and each.name in _CLASSIFYING and each.target]
        same = [each for each in targets if self._facts.names.key(each) == key]
        if not isinstance(target, cst.Name):
            return bool(same)
        if not same:
            return self._is_drawn_alike(target)
        bound = self._facts.reaching.bindings(target)
        return any(isinstance(each, cst.Name) and self._facts.reaching.bindings(each) == bound for each in same)

    def _is_drawn_alike(self, target: cst.Name) -> bool:
        """Whether a loop draws a value as others draw the target of a classifying loss: by the same name, at the same place."""
        losses = [
            each for call in self._facts.tree.all(cst.Call) if (each := self._facts.criteria.of(call)) is not None
        ]
        targets = [each.target for each in losses if each.name in _CLASSIFYING]
        same = [each for each in targets if isinstance(each, cst.Name) and each.value == target.value]
        places = {self._place(each) for each in [target, *same]}
        return bool(same) and len(places) == 1 and None not in places

    def _place(self, target: cst.BaseExpression | None, depth: int = 0) -> tuple[str, int] | None:
        """Name and place in the batch of a loop's variable, which may have been moved to another device."""
        while isinstance(target, cst.Call) and self._facts.names.method(target) in {"to", "cuda", "long"}:
            target = target.func.value if isinstance(target.func, cst.Attribute) else None
        found = self._facts.reaching.bindings(target) if isinstance(target, cst.Name) else []
        if len(found) != 1 or depth > 3:
            return None
        drawn = found[0]
        if drawn.kind is Kind.LOOP:
            return (drawn.name, drawn.path[-1]) if drawn.path else None
        if drawn.kind is not Kind.ASSIGN or drawn.value is None:
            return None
        if not drawn.path:
            return self._place(drawn.value, depth + 1)
        if (
            isinstance(drawn.value, cst.Tuple)
            and len(drawn.path) == 1
            and 0 <= drawn.path[0] < len(drawn.value.elements)
        ):
            return self._place(drawn.value.elements[drawn.path[0]].value, depth + 1)
        return None

    def made_column_of(self, target: cst.BaseExpression) -> cst.BaseExpression | None:
        """`y` of `y.unsqueeze(1)`, `y.view(-1, 1)` and `y.reshape(-1, 1)`."""
        if not isinstance(target, cst.Call) or not isinstance(target.func, cst.Attribute):
            return None
        given = [self._facts.names.constant(arg.value) for arg in target.args]
        shapes = {"unsqueeze": ([1], [-1]), "view": ([-1, 1],), "reshape": ([-1, 1],)}
        return target.func.value if given in shapes.get(target.func.attr.value, ()) else None

    def is_column(self, target: cst.Name) -> bool:
        """Whether a classifying loss takes `squeeze(1)` of what a loop draws by the same name, at the same place: of a
        row that would raise, and a mask has more dimensions than a linear layer gives classes for."""
        losses = [
            each for call in self._facts.tree.all(cst.Call) if (each := self._facts.criteria.of(call)) is not None
        ]
        taken = [each.target for each in losses if each.name in _CLASSIFYING and each.target and self._is_flat(each)]
        same = [each for each in map(self._squeezed, taken) if each is not None and each.value == target.value]
        places = {self._place(each) for each in [target, *same]}
        return bool(same) and len(places) == 1 and None not in places

    def _is_flat(self, loss: Criterion) -> bool:
        """Whether a loss surely takes one row of classes for each example, as a linear layer gives them."""
        last = self._facts.activations.of(loss.input)
        return last is not None and last.name == "linear"

    def _squeezed(self, target: cst.BaseExpression) -> cst.Name | None:
        func = target.func if isinstance(target, cst.Call) and len(target.args) == 1 else None
        if not isinstance(func, cst.Attribute) or func.attr.value != "squeeze" or not isinstance(target, cst.Call):
            return None
        inner = func.value if self._facts.names.constant(target.args[0].value) == 1 else None
        return inner if isinstance(inner, cst.Name) else None
