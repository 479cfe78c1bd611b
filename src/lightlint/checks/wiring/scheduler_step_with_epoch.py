from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.configured import SCHEDULERS
from lightlint.facts.hooks import TRAINING_STEP, Hook, Owner
from lightlint.facts.inherited import kept
from lightlint.facts.loops import LoopKind
from lightlint.facts.origins import Origin
from lightlint.facts.tree import Loop
from lightlint.finding import Applicability
from lightlint.fixes.edits import remove_argument

_OVERRIDE = Hook(Owner.MODULE, "lr_scheduler_step")


class SchedulerStepWithEpoch(Check):
    def visit_Call(self, call: cst.Call) -> None:
        function = self.tree.function(call)
        if self.names.method(call) != "step" or len(call.args) != 1:
            return
        lightning = function is not None and self._is_epoch(call.args[0])
        if self._is_in_batch_loop(call) or (
            lightning and function is not None and (self._is_override(call, function) or self._is_by_hand(call))
        ):
            self.report(
                call,
                "`step` with the number of the epoch: the scheduler, stepped after each batch, stays where an epoch starts",
                repair=Repair(
                    "step without a number", remove_argument(self.code, call, call.args[0]), Applicability.UNSAFE
                ),
            )

    def _is_in_batch_loop(self, call: cst.Call) -> bool:
        """Whether a plain loop sets a schedule, as long as the training has batches, to one number for all of a pass."""
        loops, number = self.tree.loops(call), call.args[0]
        if not loops or not isinstance(call.func, cst.Attribute) or self.loops.kind(loops[0]) is not LoopKind.BATCH:
            return False
        keyword = number.keyword.value if number.keyword is not None else "epoch"
        tested = any(self.tree.contains(loops[0].body, test) for test, _ in self.facts.conditions(call))
        if keyword != "epoch" or number.star or tested or not self._is_fixed(number.value, loops[0]):
            return False
        makers = kept(self.facts, call.func.value)
        return bool(makers) and all(facts.updates.schedules.is_sized_in_batches(origin) for facts, origin in makers)

    def _is_fixed(self, number: cst.BaseExpression, loop: Loop) -> bool:
        """Whether a number is made of constants and names that no iteration binds: `epoch - 1`."""
        match number:
            case cst.Integer():
                return True
            case cst.BinaryOperation():
                return self._is_fixed(number.left, loop) and self._is_fixed(number.right, loop)
            case cst.Name():
                found = self.names.bindings.lookup(number)
                return bool(found) and not any(self.tree.contains(loop, each.site) for each in found)
        return False

    def _is_override(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Whether a call is the step of an `lr_scheduler_step` that Lightning runs after each batch."""
        node = self.tree.class_of(function)
        known = self.hooks.of(function) == _OVERRIDE and node is not None and self._is_parameter(call, function)
        return known and node is not None and self._counts_steps(node)

    def _is_by_hand(self, call: cst.Call) -> bool:
        """Whether each batch of a manual optimization makes a step of a schedule whose length is the number of its steps."""
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        sources = self.facts.reaching.sources(receiver) if receiver is not None else []
        if not sources or any(self.names.method(each) != "lr_schedulers" for each in sources):
            return False
        node = self.facts.optimization.step_class(call)
        if node is None or not self.facts.optimization.is_manual(node) or self.facts.conditions(call):
            return False
        if TRAINING_STEP not in {hook.name for hook in self.facts.logs.sure_hooks(call)}:
            return False
        returned = self.facts.configured.of_class(node)
        origins = [origin for each in returned for scheduler in each.schedulers for origin in scheduler.origins]
        return bool(origins) and all(map(self._is_sized_in_steps, origins))

    def _is_sized_in_steps(self, origin: Origin) -> bool:
        """Whether a scheduler of torch is made with the number of all steps, which nothing divides."""
        if origin.call is None or not origin.name.startswith(SCHEDULERS) or self.facts.configured.is_plateau(origin):
            return False
        names = [name for arg in origin.call.args for name in self.tree.within(arg, cst.Name)]
        found = [each.value for name in names for each in self.names.bindings.lookup(name) if each.value is not None]
        return any(
            any(each.attr.value == "estimated_stepping_batches" for each in self.tree.within(value, cst.Attribute))
            and not any(map(_divides, self.tree.within(value, cst.BinaryOperation)))
            for value in (*origin.call.args, *found)
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


def _divides(operation: cst.BinaryOperation) -> bool:
    return isinstance(operation.operator, (cst.Divide, cst.FloorDivide))
