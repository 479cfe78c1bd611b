from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, Backward, Called, OptimizerMade, PartReplaced, Stepped
from lightlint.facts.updates import Owner, body_of, parameters_of
from lightlint.values.core import Value
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

# layers that take numbers only
_SIZED = re.compile(r"torch\.nn\.(?:Linear|Conv\w+|Embedding|BatchNorm\w+|LayerNorm|LSTM|GRU)$")
_CARRYING = {"load_state_dict", "add_param_group"}


class ParametersReplacedAfterOptimizer(Check):
    def visit_Call(self, call: cst.Call) -> None:
        params, target = self.names.argument(call, "params", 0), self._assigned(call)
        key = parameters_of(params.value) if params is not None and target is not None else ""
        optimizer = self.names.key(target) if key and target is not None else ""
        if not optimizer or not self.classes.name_is_a(self.names.call(call), "torch.optim.Optimizer"):
            return
        owner = self.tree.owner(call)
        flow = self.facts.flow(owner)
        renewed, uses = self._renewed(owner, optimizer, call), self._uses(owner, optimizer, key)
        for assign in self.tree.own(body_of(owner), cst.Assign):
            replaced = self.names.key(assign.targets[0].target)
            if not self._is_within(replaced, key) or not self._makes_anew(assign.value, key):
                continue
            made = [*renewed, call]
            if flow.reaches(call, [assign.value], avoiding=renewed) and flow.reaches(assign.value, uses, avoiding=made):
                self.report(
                    assign.targets[0].target,
                    f"the parameters of this `{replaced}` are none of those `{optimizer}` was made with, and are never updated",
                )

    def _assigned(self, call: cst.Call) -> cst.BaseExpression | None:
        above = self.tree.parent(call)
        return above.targets[0].target if isinstance(above, cst.Assign) and len(above.targets) == 1 else None

    def _is_within(self, replaced: str, key: str) -> bool:
        return replaced == key or replaced.startswith((f"{key}.", f"{key}["))

    def _makes_anew(self, value: cst.BaseExpression, key: str) -> bool:
        """Whether a value is a module of its own with parameters, not one made around the old."""
        while isinstance(value, cst.Call) and self.names.method(value) in {"to", "cuda", "train", "requires_grad_"}:
            if not isinstance(value.func, cst.Attribute):
                return False
            value = value.func.value
        root = key.split(".")[0]
        around = any(
            name.value == root and not self._is_size(name)
            for name in self.tree.within(value, cst.Name)
            if root != "self"
        )
        return self.facts.gradients.makes_parameters(value) and not around

    def _is_size(self, name: cst.Name) -> bool:
        """Whether a module is only asked for a size: `model.fc.in_features`."""
        node: cst.CSTNode = name
        while isinstance(above := self.tree.parent(node), (cst.Attribute, cst.Subscript)):
            node = above
        if isinstance(above, cst.Arg) and _SIZED.match(self.names.call(self.tree.parent(above)) or ""):
            return isinstance(node, cst.Attribute)
        return isinstance(node, cst.Attribute) and node.attr.value.startswith(
            ("in_", "out_", "num_", "embedding_", "hidden_")
        )

    def _renewed(self, owner: Owner, optimizer: str, call: cst.Call) -> list[cst.CSTNode]:
        """Where the function makes the optimizer again, or tells it of parameters."""
        assigns = self.tree.own(body_of(owner), cst.Assign)
        again = [each.value for each in assigns if self.names.key(each.targets[0].target) == optimizer]
        told = [each for each in self.tree.own(body_of(owner), cst.Call) if self.names.method(each) in _CARRYING]
        return [*(each for each in again if each is not call), *told]

    def _uses(self, owner: Owner, optimizer: str, key: str) -> list[cst.Call]:
        """The calls that train with both: steps of the optimizer, and helpers that are given the two."""
        found = []
        for call in self.tree.own(body_of(owner), cst.Call):
            given = {self.names.key(arg.value) for arg in call.args}
            steps = self.names.method(call) == "step" and isinstance(call.func, cst.Attribute)
            receiver = self.names.key(call.func.value) if isinstance(call.func, cst.Attribute) else ""
            if (steps and optimizer in {receiver, *given}) or {optimizer, key} <= given:
                found.append(call)
        return found

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parameters that are trained and in no optimizer, put into a module after the optimizer of the rest was made."""
        for path in entry.paths:
            made = path.of(OptimizerMade)
            if not made or any(event.optimizer.escaped for event in made):
                continue
            open_ended = [event.time for event in made if event.optimizer.more]
            added = any(event.path == "add_param_group" for event in path.of(Called))
            held = {each for event in made for each in event.optimizer.parameters}
            reached = {each for event in path.of(Backward) for each in event.parameters}
            stepped = {event.optimizer for event in path.of(Stepped)}
            for event in path.events:
                if not isinstance(event, (AttributeSet, PartReplaced)):
                    continue
                module, new = (
                    (event.object, event.value) if isinstance(event, AttributeSet) else (event.module, event.after)
                )
                lost = [
                    each for each in _parameters_of(new) if each in reached and each not in held and not each.escaped
                ]
                before = [
                    each
                    for each in made
                    if each.time < event.time and each.optimizer in stepped and _shares(module, each)
                ]
                if added or any(each.made < time for each in lost for time in open_ended):
                    continue  # those may be among what is out of sight
                if open_ended and any(each not in before for each in made if each.optimizer in stepped):
                    continue
                if lost and before:
                    message = "these parameters are none of those the optimizer was made with, and are never updated"
                    yield Fault.at(event, message)


def _parameters_of(value: Value) -> list[Tensor]:
    if isinstance(value, Module):
        return [each for each in value.parameters() if each.requires_grad]
    return [value] if isinstance(value, Tensor) and value.parameter and value.requires_grad else []


def _shares(module: Value, made: OptimizerMade) -> bool:
    """Whether an optimizer was made with parameters of a module."""
    held = set(made.optimizer.parameters)
    return isinstance(module, Module) and any(each in held for each in module.parameters())
