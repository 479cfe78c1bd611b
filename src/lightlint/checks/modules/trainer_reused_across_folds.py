from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.tree import Loop

_PROGRESS = {
    "fit_loop",
    "max_epochs",
    "max_steps",
    "epoch_progress",
    "epoch_loop",
    "current_epoch",
    "reset",
    "should_stop",
}
_OPEN_ENDED = {"fast_dev_run", "max_time", "overfit_batches"}


class TrainerReusedAcrossFolds(Check):
    def visit_Call(self, call: cst.Call) -> None:
        run = next((each for each in self.facts.training.runs if each.call is call), None)
        if (
            run is None
            or run.entry != "fit"
            or run.trainer is None
            or self.names.argument(call, "ckpt_path") is not None
        ):
            return
        owner = self.tree.owner(call)
        loops = [each for each in self.tree.loops(call) if isinstance(each, cst.For)]
        if not loops or self.tree.owner(run.trainer) is not owner or self.tree.loops(run.trainer):
            return
        if self._ends_itself(run.trainer) and self._repeats(call, loops[0]) and not self._is_reset(call, owner):
            trainer = self.code.text_of(call.func.value) if isinstance(call.func, cst.Attribute) else "trainer"
            self.report(call, f"`{trainer}` has reached its last epoch after the first `fit`: later ones train nothing")

    def _ends_itself(self, trainer: cst.Call) -> bool:
        """Whether the number of epochs ends a fit: a later one then ends at once."""
        if self.names.has_star(trainer):
            return False
        given = {arg.keyword.value: self.names.constant(arg.value) for arg in trainer.args if arg.keyword is not None}
        epochs = given.get("max_epochs", 1 if "max_steps" not in given else None)
        return given.keys().isdisjoint(_OPEN_ENDED) and epochs not in (-1, None)

    def _repeats(self, call: cst.Call, loop: Loop) -> bool:
        inside_try = any(isinstance(each, cst.Try) for each in self.tree.ancestors(call))
        again = self.facts.flow(self.tree.owner(call)).reaches_in_later_iteration(loop, call, [call])
        tests = [test for test, _ in self.facts.conditions(call) if self.tree.contains(loop.body, test)]
        return again and not inside_try and not tests

    def _is_reset(self, call: cst.Call, owner: cst.CSTNode) -> bool:
        """Whether code deals with the Trainer's progress, or rebinds its name in the loop."""
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        if not isinstance(receiver, cst.Name) or len(self.names.bindings.lookup(receiver)) != 1:
            return True
        name = receiver.value
        for attribute in self.tree.within(owner, cst.Attribute):
            if attribute.attr.value in _PROGRESS and self.names.key(attribute).startswith(f"{name}."):
                return True
        handed = (arg.value for each in self.tree.own(owner, cst.Call) for arg in each.args)
        return any(isinstance(value, cst.Name) and value.value == name for value in handed)
