from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Clipped, Stepped, Unscaled
from lightlint.facts.keywords import keywords
from lightlint.facts.updates import Update
from lightlint.facts.world import TRAINER
from lightlint.fixes.edits import Draft, insert_before
from lightlint.fixes.moves import block_of
from lightlint.values.core import is_constant
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_SCALED = (16, "16", "16-mixed")
_PRECISION = (
    "amp",
    "scale",
    "fp16",
    "half",
    "precision",
)  # in the words of a test: it may ask whether a scaler is used
_DEPTH = 3
Owner = cst.FunctionDef | cst.Module


class ClipBeforeUnscale(Check):
    def visit_Call(self, call: cst.Call) -> None:
        facts = self.facts.updates
        clips = facts.clips(call)
        if not clips and not self._clips_in_helper(call):
            return
        if self._is_threshold_scaled(call):
            return
        owner = self.tree.owner(call)
        if clips and isinstance(owner, cst.FunctionDef) and self._runs_before_unscaling(owner):
            self.report(
                call,
                "clips in `on_after_backward`, before Lightning divides the gradients by the scale of `16-mixed`: next to nothing is left of them",
            )
            return
        scaled = [
            each for each in facts.own(owner) if self.loops.is_backward(each) and facts.scaler_of(each) is not None
        ]
        steps = [each for each in facts.updates(owner) if each.scaler is not None]
        if not scaled or not steps or self._may_unscale(owner) or self._is_disabled(steps[0]):
            return
        flow = self.facts.flow(owner)
        met = [each for each in scaled if flow.reaches(each, [call], avoiding=[step.call for step in steps])]
        used = [each for each in steps if flow.reaches(call, [each.call])]
        if not met or not used or not self._same_case(call, met[0]):
            return
        scaler = self.code.text_of(used[0].scaler) if used[0].scaler is not None else ""
        self.report(
            call,
            f"clips gradients that `{scaler}` has multiplied by its scale, 65536 at first: next to nothing is left of them",
            repair=Repair("unscale the gradients first", self._draft(call, used[0], steps)),
        )

    def _clips_in_helper(self, call: cst.Call, depth: int = 0) -> bool:
        """Whether a call runs a helper of this file that clips, in whatever precision, and does nothing else to gradients."""
        helper, updates = self.facts.steps.callee(call), self.facts.updates
        if helper is None or depth > _DEPTH or any(each is not helper for each in self.hooks.callees(call)):
            return False
        inner = updates.own(helper)
        found = [each for each in inner if updates.clips(each) or self._clips_in_helper(each, depth + 1)]
        if not found or updates.handles_gradients(helper) or updates.backwards(helper):
            return False
        words = {
            word.lower() for each in found for test, _ in self.facts.conditions(each) for word in self._words(test)
        }
        return not any(part in word for word in words for part in _PRECISION) and not any(
            self.names.method(each) == "step" for each in inner
        )

    def _is_threshold_scaled(self, call: cst.Call) -> bool:
        """Whether what a call clips to may be multiplied by a scaler's scale, as the gradients are."""
        updates, helper = self.facts.updates, self.facts.steps.callee(call)
        bodies = self.facts.steps.bodies(helper.body) if helper is not None else [call]
        clips = [each for body in bodies for each in self.tree.within(body, cst.Call) if updates.clips(each)]
        return any(updates.scaling.is_scaled(arg.value) for each in clips for arg in each.args)

    def _runs_before_unscaling(self, function: cst.FunctionDef) -> bool:
        """Whether Lightning calls a function behind the backward pass, and each Trainer in sight trains in 16-bit mixed precision."""
        hook = self.hooks.of(function)
        if hook is None or hook.name != "on_after_backward" or "unscale_" in self.facts.source.text:
            return False
        trainers = [each for each in self.tree.all(cst.Call) if self.names.call(each) == TRAINER]
        given = [
            [self.names.constant(word.value) for word in keywords(self.facts, each) if word.name == "precision"]
            for each in trainers
        ]
        return bool(given) and all(len(each) == 1 and each[0] in _SCALED for each in given)

    def _may_unscale(self, owner: Owner) -> bool:
        """Whether something in a function, or in a helper it calls or hands its scaler to, may unscale."""
        body = owner.body if isinstance(owner, cst.FunctionDef) else owner
        if self.facts.steps.runs(body, lambda each: "unscale" in self.names.method(each)):
            return True
        given = [(each, arg.value) for each in self.facts.updates.own(owner) for arg in each.args]
        out_of_sight = [
            each for each, value in given if self.hooks.callee(each) is None and self.facts.updates.is_scaler(value)
        ]
        return bool(out_of_sight) or self.facts.updates.handles_gradients(owner)

    def _is_disabled(self, step: Update) -> bool:
        """Whether the scaler was made to do nothing."""
        made = [origin.call for origin in self.values.origins(step.scaler) if origin.call is not None]
        flags = [self.names.argument(each, "enabled") for each in made]
        return any(flag is not None and self.names.constant(flag.value) is False for flag in flags)

    def _same_case(self, clip: cst.Call, backward: cst.Call) -> bool:
        """Whether no test that decides about one of the two may speak against the other."""
        ours = {(self.code.text_of(test), outcome) for test, outcome in self.facts.conditions(clip)}
        theirs = {(self.code.text_of(test), outcome) for test, outcome in self.facts.conditions(backward)}
        # what holds for both, such as an `assert` before the loop, does not set one against the other
        words = {word for test in self._alone(backward, ours) for word in self._words(test)}
        others = [test for test in self._alone(clip, theirs) if words & self._words(test)]
        opposed = {(text, not outcome) for text, outcome in ours} & theirs
        amp = any(
            "amp" in word or "scaler" in word or "fp16" in word
            for test, _ in self.facts.conditions(clip)
            for word in self._words(test)
        )
        return not others and not opposed and (not amp or ours <= theirs)

    def _alone(self, call: cst.Call, others: set[tuple[str, bool]]) -> list[cst.BaseExpression]:
        """The tests that decide about a call and are none of some others."""
        return [
            test for test, outcome in self.facts.conditions(call) if (self.code.text_of(test), outcome) not in others
        ]

    def _words(self, node: cst.CSTNode) -> set[str]:
        return {name.value for name in self.tree.within(node, cst.Name)}

    def _draft(self, clip: cst.Call, step: Update, steps: list[Update]) -> Draft | None:
        """`unscale_` in front of the clip call, where that runs as often as the only step."""
        statement = self.tree.statement(clip)
        tested = {(test, outcome) for test, outcome in self.facts.conditions(step.call)}
        often = self.tree.loops(clip)[:1] == self.tree.loops(step.call)[:1]
        if len(steps) != 1 or not often or not isinstance(statement, cst.BaseSmallStatement) or step.scaler is None:
            return None
        if not tested <= set(self.facts.conditions(clip)) or block_of(self.code, statement) is None:
            return None
        text = f"{self.code.text_of(step.scaler)}.unscale_({self.code.text_of(step.optimizer)})"
        return insert_before(self.code, statement, text)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Clipping between a backward pass of a scaled loss and the step of the scaler, with no `unscale_` between."""
        for path in entry.paths:
            scaled: set[Tensor] = set()
            clipped: list[Clipped] = []
            for event in path.events:
                if isinstance(event, Backward):
                    is_scaled = event.loss is not None and event.loss.unscaled_loss is not None
                    scaled = scaled | set(event.parameters) if is_scaled else scaled - set(event.parameters)
                elif isinstance(event, Unscaled):
                    scaled, clipped = set(), []
                elif isinstance(event, Clipped):
                    plain = event.limit is None or event.limit.key is not None
                    clipped += [event] if plain and scaled & set(event.parameters) else []
                elif isinstance(event, Stepped):
                    if event.via == "scaler" and _is_on(event):
                        message = "clips gradients that the scaler has multiplied by its scale, 65536 at first: next to nothing is left of them"
                        yield from (Fault.at(each, message) for each in clipped)
                    clipped = []


def _is_on(event: Stepped) -> bool:
    """Whether the scaler of a step surely scales, and nothing out of sight had it."""
    scaler = event.scaler
    enabled = scaler.arguments.get("enabled") if scaler is not None else None
    return scaler is not None and not scaler.escaped and (enabled is None or is_constant(enabled, True))
