from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import DevicesMixed, LossComputed
from lightlint.facts.classes import NN_MODULE
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_NN = "torch.nn."
_WEIGHTS = {  # which arguments of a loss are tensors that have to be where its input is
    f"{_NN}CrossEntropyLoss": ("weight",),
    f"{_NN}NLLLoss": ("weight",),
    f"{_NN}MultiMarginLoss": ("weight",),
    f"{_NN}BCELoss": ("weight",),
    f"{_NN}BCEWithLogitsLoss": ("weight", "pos_weight"),
}
_ONE_DIMENSION = {f"{_NN}CrossEntropyLoss", f"{_NN}NLLLoss"}  # which refuse a weight without
_MOVES = {"to", "cuda"}
_DEFAULTS = {"set_default_device", "set_default_tensor_type"}


class CriterionWeightOnCpu(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if len(call.args) != 2 or not isinstance(call.func, cst.Name | cst.Attribute) or self.names.call(call):
            return
        if not self._is_on_gpu(call.args[1].value, self.tree.owner(call)):
            return
        made = self.facts.values.constructor(call.func)
        if made is None or made.call is None or made.name not in _WEIGHTS:
            return
        given = [arg for word in _WEIGHTS[made.name] if (arg := self.names.argument(made.call, word)) is not None]
        if made.name != f"{_NN}BCEWithLogitsLoss" and not given:
            given = [arg for arg in made.call.args[:1] if arg.keyword is None]
        any_size = made.name in _ONE_DIMENSION
        if not any(self.facts.tensors.is_made_here(arg.value, any_size=any_size) for arg in given):
            return
        if not self._may_move(call, made.call) and not self._meets_none(call):
            short = made.name.removeprefix(_NN)
            self.report(call, f"the weight of this `{short}` stays on the CPU, and what it is given here is on a GPU")

    def _is_on_gpu(self, value: cst.BaseExpression, owner: cst.FunctionDef | cst.Module) -> bool:
        """Whether a value was moved to a GPU, there or before in the function; one that the program looks for counts."""
        if isinstance(value, cst.Call):
            return self._moves_to_gpu(value)
        key = self.names.key(value)
        moves = self.tree.own(owner.body if isinstance(owner, cst.FunctionDef) else owner, cst.Call)
        return bool(key) and any(
            isinstance(each.func, cst.Attribute) and self.names.key(each.func.value) == key and self._moves_to_gpu(each)
            for each in moves
        )

    def _moves_to_gpu(self, call: cst.Call) -> bool:
        method = self.names.method(call)
        if method == "cuda":
            return isinstance(call.func, cst.Attribute)
        return method == "to" and bool(call.args) and self._names_gpu(call.args[0].value)

    def _names_gpu(self, device: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether an expression, or what the name that it is stands for, mentions `"cuda"`."""
        if any("cuda" in each.value for each in self.tree.within(device, cst.SimpleString)):
            return True
        values = self._values(device)
        return depth < 3 and len(values) == 1 and self._names_gpu(values[0], depth + 1)

    def _values(self, held: cst.BaseExpression) -> list[cst.BaseExpression]:
        """What is assigned to a name or to an attribute of `self`."""
        if isinstance(held, cst.Name):
            bound = self.names.bindings.lookup(held)
            return [each.value for each in bound if isinstance(each.value, cst.BaseExpression)]
        if not isinstance(held, cst.Attribute):
            return []
        owner = self.classes.self_class(held.value)
        return self.classes.attribute_values(owner, held.attr.value) if owner is not None else []

    def _may_move(self, call: cst.Call, made: cst.Call) -> bool:
        """Whether a loss may follow its input to the GPU: it is moved by one of its names, or with the module that holds it."""
        assign = self.tree.parent(made)
        if isinstance(assign, cst.Attribute):
            return True
        held = [call.func, *(each.target for each in assign.targets)] if isinstance(assign, cst.Assign) else [call.func]
        if any(isinstance(each, cst.Attribute) and self._is_in_module(each) for each in held):
            return True
        values = [value for each in held if isinstance(each, cst.BaseExpression) for value in self._values(each)]
        if any(self.names.method(each) in _MOVES for value in values for each in self.tree.within(value, cst.Call)):
            return True
        names = {self.names.key(each).rpartition(".")[2] for each in held}
        return any(
            self.names.method(each) in _DEFAULTS or (self.names.method(each) in _MOVES and self._last(each) in names)
            for each in self.tree.all(cst.Call)
        ) or any(
            self.names.call(item.item) == "torch.device" for each in self.tree.all(cst.With) for item in each.items
        )

    def _is_in_module(self, attribute: cst.Attribute) -> bool:
        owner = self.classes.self_class(attribute.value)
        return owner is None or self.classes.is_a(owner, NN_MODULE) or not self.classes.complete(owner)

    def _last(self, call: cst.Call) -> str:
        """The last word of what a method is called on."""
        return self.names.key(call.func.value).rpartition(".")[2] if isinstance(call.func, cst.Attribute) else ""

    def _meets_none(self, call: cst.Call) -> bool:
        """Whether the rehearsals came to a loss and saw nothing of another device in it."""
        found = [event.input for _, _, event in self.happened(call, LossComputed)]
        known = all(isinstance(each, Tensor) and each.device is not None for each in found)
        return bool(found) and known and not self.happened(call, DevicesMixed)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Weights of losses on the CPU that meet what is on a GPU."""
        for event in entry.of(DevicesMixed):
            weight = event.on_cpu
            if weight.buffer and weight.sure_device and f"{_NN}{event.operation}" in _WEIGHTS and not weight.escaped:
                message = (
                    f"the weight of this `{event.operation}` stays on the CPU, and what it is given here is on a GPU"
                )
                yield Fault.of(event, message)
