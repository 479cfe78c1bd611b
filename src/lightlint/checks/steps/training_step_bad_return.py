from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import StepReturned
from lightlint.explore.queries import in_sight, sure
from lightlint.facts.hooks import TRAINING_STEP, Hook, Owner
from lightlint.facts.returned_keys import returned_keys
from lightlint.values.core import Constant, Mapping, Sequence, Unknown, Value
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_WITHOUT_LOSS = '`training_step` returns a dict without "loss": Lightning raises'


class TrainingStepBadReturn(Check):
    def visit_Return(self, statement: cst.Return) -> None:
        function = self.tree.function(statement)
        if function is None or statement.value is None or self.hooks.of(function) != Hook(Owner.MODULE, TRAINING_STEP):
            return
        node = self.tree.class_of(function)
        if node is None or function.decorators:
            return
        what = self._fault(statement.value) or self._fault_of_helper(statement.value)
        if (
            what
            and self.facts.optimization.is_automatic(node)
            and not self.facts.optimization.is_refined(node.name.value)
        ):
            self.report(statement.value, what)

    def _fault(self, value: cst.BaseExpression) -> str:
        match value:
            case cst.Tuple() | cst.List():
                kind = "tuple" if isinstance(value, cst.Tuple) else "list"
                return f"`training_step` returns a {kind}: Lightning takes a tensor, a dict or None and raises"
            case cst.Dict():
                return self._of_dict(value)
            case cst.Name() | cst.Call():
                keys = returned_keys(self.facts, value)
                if keys is not None and "loss" not in keys:
                    return _WITHOUT_LOSS
        if self._is_number(value):
            return "`training_step` returns a number: Lightning takes a tensor, a dict or None and raises"
        return (
            "`training_step` returns a loss without its graph: the backward pass raises" if self._is_cut(value) else ""
        )

    def _fault_of_helper(self, value: cst.BaseExpression) -> str:
        """What is wrong with what a method of the class gives, if it gives that in every case."""
        callee = self.hooks.callee(value) if isinstance(value, cst.Call) else None
        own = callee is not None and self.tree.class_of(callee) is self.tree.enclosing_class(value)
        if callee is None or not own or callee.decorators or self.hooks.of(callee) is not None:
            return ""
        given = self.values.returns(callee)
        if any(isinstance(each, cst.Dict) and not each.elements for each in given):
            return ""  # a place for what subclasses of other files give
        found = [self._fault(each) if each is not None else "" for each in given]
        return found[0] if found and all(found) else ""

    def _of_dict(self, value: cst.Dict) -> str:
        spelled = [
            self.facts.strings.possible(each.key) if isinstance(each, cst.DictElement) else None
            for each in value.elements
        ]
        keys = [text for text in spelled if text is not None]
        if len(keys) < len(spelled):
            return ""
        if not any("loss" in text for text in keys):
            return _WITHOUT_LOSS
        loss = next((each.value for each, text in zip(value.elements, keys, strict=True) if text == {"loss"}), None)
        if loss is None:
            return ""
        if self._is_number(loss) or self._is_cut(loss):
            return "`training_step` returns a loss without its graph: the backward pass raises"
        return ""

    def _is_number(self, value: cst.BaseExpression) -> bool:
        if isinstance(value, (cst.Integer, cst.Float)):
            return True
        method, bare = self.names.method(value), isinstance(value, cst.Call) and not value.args
        return (method in {"item", "tolist", "numpy"} and bare) or self.names.call(value) in {
            "builtins.float",
            "builtins.int",
        }

    def _is_cut(self, value: cst.BaseExpression) -> bool:
        return isinstance(value, cst.Call) and not value.args and self.names.method(value) == "detach"

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """What `training_step` gave, where it surely is what Lightning refuses."""
        for event in sure(entry, StepReturned, lambda each: each.automatic and bool(_refused(each.result))):
            if in_sight([event.module]) and not self.facts.optimization.is_refined(event.module.name):
                yield Fault.at(event, f"`training_step` returns {_refused(event.result)}")


def _refused(value: Value) -> str:
    """What a result is, and what becomes of it; "" for one that Lightning may take."""
    raises = ": Lightning takes a tensor, a dict or None and raises"
    if isinstance(value, Sequence):
        return f"a {value.kind}{raises}" if value.kind in ("tuple", "list") else ""
    if isinstance(value, Constant) and value.value is not None:
        return f"a {'text' if isinstance(value.value, str) else 'number'}{raises}"
    if isinstance(value, Unknown) and isinstance(value.key, tuple) and value.key[:1] == ("item",) and value.plain:
        return f"a number{raises}"
    if not isinstance(value, Mapping):
        return ""
    loss = value.items.get("loss")
    if loss is None:
        return 'a dict without "loss": Lightning raises' if value.items and not value.more and not value.escaped else ""
    cut = loss.cuts and not loss.escaped and not (isinstance(loss, Tensor) and loss.parameters)
    return "a loss without its graph: the backward pass raises" if cut else ""
