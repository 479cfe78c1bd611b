from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.configured import SCHEDULERS
from lightlint.facts.hooks import Hook, Owner
from lightlint.finding import Applicability
from lightlint.fixes.edits import remove_argument

_OVERRIDE = Hook(Owner.MODULE, "lr_scheduler_step")


class SchedulerStepWithEpoch(Check):
    def visit_Call(self, call: cst.Call) -> None:
        function = self.tree.function(call)
        if function is None or self.names.method(call) != "step" or self.hooks.of(function) != _OVERRIDE:
            return
        node = self.tree.class_of(function)
        if node is None or len(call.args) != 1 or not self._is_parameter(call, function):
            return
        if self._is_epoch(call.args[0]) and self._counts_steps(node):
            self.report(
                call,
                "`step` with the number of the epoch: the scheduler, stepped after each batch, stays where an epoch starts",
                repair=Repair(
                    "step without a number", remove_argument(self.code, call, call.args[0]), Applicability.UNSAFE
                ),
            )

    def _is_parameter(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Whether the receiver is the scheduler that the hook is called with."""
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        plain = [each.name.value for each in function.params.params]
        return isinstance(receiver, cst.Name) and plain[1:2] == [receiver.value]

    def _is_epoch(self, argument: cst.Arg) -> bool:
        value = argument.value
        return (
            (argument.keyword is None or argument.keyword.value == "epoch")
            and isinstance(value, cst.Attribute)
            and value.attr.value == "current_epoch"
        )

    def _counts_steps(self, node: cst.ClassDef) -> bool:
        """Whether all schedulers of the module are torch's and stepped after each batch."""
        schedulers = [each for returned in self.facts.configured.of_class(node) for each in returned.schedulers]
        return bool(schedulers) and all(
            each.config is not None
            and self.names.constant(each.config.values.get("interval")) == "step"
            and bool(each.origins)
            and all(
                origin.name.startswith(SCHEDULERS) and not self.facts.configured.is_plateau(origin)
                for origin in each.origins
            )
            for each in schedulers
        )
