from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, StepReturned
from lightlint.explore.queries import in_sight, inside
from lightlint.facts.hooks import TRAINING_STEP
from lightlint.finding import Tier
from lightlint.values.training import tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class BackwardInAutomatic(Check):
    def visit_Call(self, call: cst.Call) -> None:
        facts = self.facts.optimization
        tensor = facts.raw_backward(call)
        if tensor is None and not facts.manual_backward(call):
            return
        node = facts.step_class(call)
        if node is None or not facts.is_automatic(node):
            return
        if tensor is None:
            self.report(call, "`manual_backward` raises, since `automatic_optimization` is not turned off")
            return
        returned = self._is_returned(call, tensor)
        if returned or (any(map(self._steps, facts.calls(node))) and not self._steps_own(call)):
            name = self.code.text_of(tensor)
            self.report(
                call,
                f"a backward pass over `{name}` in a step whose backward pass is Lightning's",
                tier=None if returned else Tier.WARNING,
            )

    def _steps_own(self, call: cst.Call) -> bool:
        """Whether the function of a backward pass made an optimizer itself, for an inner loop over weights of its own."""
        owner = self.tree.owner(call)
        stepped = [self.facts.steps.optimizer(each) for each in self.tree.own(owner, cst.Call)]
        origins = [origin for each in stepped if each is not None for origin in self.values.origins(each)]
        return any(origin.call is not None and self.tree.owner(origin.call) is owner for origin in origins)

    def _steps(self, call: cst.Call) -> bool:
        """Whether a call steps one of Lightning's optimizers, so that the whole step is by hand."""
        func = call.func
        is_step = isinstance(func, cst.Attribute) and func.attr.value == "step"
        return isinstance(func, cst.Attribute) and is_step and self.facts.optimization.from_optimizers(func.value)

    def _is_returned(self, call: cst.Call, tensor: cst.BaseExpression) -> bool:
        """Whether Lightning runs a backward pass over the same graph, which this one has freed."""
        function = self.tree.function(call)
        key = self.names.key(tensor)
        if function is None or function.name.value != TRAINING_STEP or not key:
            return False
        if (
            self.names.argument(call, "retain_graph") is not None
            or self.names.argument(call, "create_graph") is not None
        ):
            return False
        returns = [each for each in self.tree.own(function.body, cst.Return) if self._loss_key(each.value) == key]
        sites = [each.site for each in self.names.bindings.lookup(tensor)] if isinstance(tensor, cst.Name) else []
        return self.facts.flow(function).reaches(call, returns, avoiding=sites)

    def _loss_key(self, value: cst.BaseExpression | None) -> str:
        if isinstance(value, cst.Dict):
            entries = [each for each in value.elements if isinstance(each, cst.DictElement)]
            value = next((each.value for each in entries if self.names.constant(each.key) == "loss"), None)
        return self.names.key(value)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes by hand in a `training_step` whose result Lightning goes back over, or would if it gave one."""
        for path in entry.paths:
            pending: list[Backward] = []
            for event in path.events:
                if isinstance(event, Backward) and inside(event.where, "training_step"):
                    pending.append(event)
                elif isinstance(event, StepReturned):
                    yield from _by_hand(pending, event) if event.automatic else ()
                    pending = []


def _by_hand(passes: list[Backward], returned: StepReturned) -> Iterator[Fault]:
    given = {graph for each in tensors_in(returned.result) for graph in each.graph}
    for event in passes:
        if event.via == "manual_backward":
            yield Fault.at(event, "`manual_backward` raises, since `automatic_optimization` is not turned off")
        elif event.graph & given and not event.kept and in_sight([returned.module, *tensors_in(returned.result)]):
            yield Fault.at(event, "a backward pass over a loss in a step whose backward pass is Lightning's")
