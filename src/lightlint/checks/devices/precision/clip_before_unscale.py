from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Cleared, Clipped, FitStarted, Stepped, Unscaled
from lightlint.explore.questions.queries import beside, holds, scales
from lightlint.fixes.drafts.moves import block_of
from lightlint.fixes.edits import Draft, insert_before
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value
    from lightlint.values.training import Tensor

_SCALED = (16, "16", "16-mixed")


class ClipBeforeUnscale(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Clipping after a backward pass of a scaled loss and ahead of the scaler's step, with no `unscale_` before it."""
        for path in entry.paths:
            yield from _before_hook(path)
            scaler: Value | None = None
            clipped: list[tuple[Clipped, Value]] = []
            cleared: set[Tensor] = set()  # since the last pass: no gradient is there to be clipped, or to be unscaled
            for event in path.events:
                if isinstance(event, Backward):
                    scaler = event.loss.scaler if event.loss is not None else None
                    cleared = set()
                elif isinstance(event, Cleared):
                    cleared.update(event.parameters)
                elif isinstance(event, Unscaled):
                    scaler = None
                elif isinstance(event, Clipped):
                    if (
                        scaler is not None
                        and not _knows_scale(event, scaler)
                        and not cleared.issuperset(event.parameters)
                    ):
                        clipped.append((event, scaler))
                elif isinstance(event, Stepped):
                    scaled = [each for each, by in clipped if by is event.scaler and _is_scaled(each, event)]
                    yield from (_fault(each, event) for each in scaled)
                    clipped = []

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        owner = self.tree.owner(node)
        steps = [
            each
            for each in self.tree.own(owner, cst.Call)
            if self.names.method(each) == "step" and len(each.args) == 1 and not each.args[0].star
        ]
        unscaled = any(self.names.method(each) == "unscale_" for each in self.tree.own(owner, cst.Call))
        if unscaled or len(steps) != 1 or not isinstance(node, cst.Call):
            return None
        return Repair("unscale the gradients first", self._draft(node, steps[0]))

    def _draft(self, clip: cst.Call, step: cst.Call) -> Draft | None:
        """`unscale_` in front of the clip call, where that runs as often as the only step."""
        statement = self.tree.statement(clip)
        tested = {(test, outcome) for test, outcome in self.facts.conditions(step)}
        often = self.tree.loops(clip)[:1] == self.tree.loops(step)[:1]
        if not often or not isinstance(statement, cst.BaseSmallStatement) or not isinstance(step.func, cst.Attribute):
            return None
        if not tested <= set(self.facts.conditions(clip)) or block_of(self.code, statement) is None:
            return None
        scaler, optimizer = (self.code.text_of(each) for each in (step.func.value, step.args[0].value))
        return insert_before(self.code, statement, f"{scaler}.unscale_({optimizer})")


def _fault(clip: Clipped, step: Stepped) -> Fault:
    message = (
        "clips gradients that the scaler has multiplied by its scale, 65536 at first: next to nothing is left of them"
    )
    return Fault(beside(clip, step), message, also=(clip.site,))


def _knows_scale(clip: Clipped, scaler: Value) -> bool:
    """Whether the gradients were divided by hand, or what they are clipped to may be multiplied by the scale."""
    limit = clip.limit.key if clip.limit is not None else ""
    touched = any(each.gradient_touched for each in clip.parameters)
    return limit is None or touched or holds(limit, ("scale", getattr(scaler, "number", 0)))


def _is_scaled(clip: Clipped, step: Stepped) -> bool:
    """Whether gradients that are clipped are those that a scaler then divides by its scale, as far as it is on."""
    scaler = step.scaler
    if scaler is None or scaler.escaped or scales(scaler) is False or not set(clip.parameters) & set(step.parameters):
        return False
    enabled = scaler.arguments.get("enabled")
    asked = enabled is not None and (
        enabled.key is None or any(holds(c.key, enabled.key) for c in clip.where.conditions)
    )
    return not asked or is_constant(enabled, True)


def _before_hook(path: Path) -> Iterator[Fault]:
    """Clipping in a hook of Lightning that runs before it unscales."""
    unscaled = path.of(Unscaled)
    for event in path.of(Clipped):
        fits = [each for each in path.of(FitStarted) if each.time < event.time]
        precision = fits[-1].trainer.arguments.get("precision") if fits else None
        if event.where.hook == "on_after_backward" and is_constant(precision, *_SCALED) and not unscaled:
            message = "clips in `on_after_backward`, before Lightning divides the gradients by the scale of `16-mixed`: next to nothing is left of them"
            yield Fault.at(event, message)
