from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Cleared, Clipped, Stepped
from lightlint.facts.updates import Owner, Update
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import Draft
from lightlint.fixes.moves import move_before
from lightlint.values.core import number_of
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_HIGH = 100  # a norm above which nobody clips: the call is there for what it returns
_MAYBE_BACKWARD = re.compile(r"backward|train|update|optim|step|learn", re.IGNORECASE)


class ClipGradWrongPlace(Check):
    def visit_Call(self, call: cst.Call) -> None:
        by_hand = self.facts.updates.clips_by_hand(call)
        clip = call if by_hand is not None or self.facts.updates.clips(call) else self._clip_of_helper(call)
        if clip is None or (by_hand is None and self._is_measurement(clip)):
            return
        owner = self.tree.owner(call)
        updates = self.facts.updates.updates(owner)
        if len({self.names.key(update.optimizer) for update in updates}) != 1:
            return
        reason = self._reason(by_hand or call, owner, updates)
        if reason and not self.facts.steps.leaves_sight(updates[0].optimizer):
            draft = self._draft(call, updates) if by_hand is None else None
            kept = by_hand is None and not isinstance(self.tree.parent(call), cst.Expr)
            self.report(
                call,
                f"clips gradients {reason}, so it changes nothing",
                repair=Repair("clip before the step", draft, Applicability.UNSAFE),
                tier=Tier.WARNING if kept else None,
            )

    def _clip_of_helper(self, call: cst.Call) -> cst.Call | None:
        """The clipping that a call is for: of a helper of this file that does nothing else with gradients."""
        helper = self.hooks.callee(call) if isinstance(self.tree.parent(call), cst.Expr) else None
        inner = self.facts.updates.own(helper) if helper is not None else []
        facts = self.facts.updates
        clip = next((each for each in inner if facts.clips(each) or facts.clips_by_hand(each)), None)
        if helper is None or clip is None or facts.handles_gradients(helper, besides=facts.clips_by_hand(clip)):
            return None
        others = any(self._may_step(each) or _MAYBE_BACKWARD.search(self.names.method(each)) for each in inner)
        kept = facts.clips(clip) and not isinstance(self.tree.parent(clip), (cst.Expr, cst.Return))
        return None if others or kept or facts.clears(helper) else clip

    def _is_measurement(self, clip: cst.Call) -> bool:
        """Whether the norm is kept and the limit is none, or too high to be one, or out of sight."""
        limit = self.names.argument(clip, "max_norm", 1)
        value = self.names.constant(limit.value) if limit is not None else None
        words = self.tree.within(limit.value, cst.Name, cst.SimpleString) if limit is not None else []
        named = any(re.search(r"clip|max_norm", each.value) for each in words)
        return not isinstance(self.tree.parent(clip), cst.Expr) and not (
            named or (isinstance(value, (int, float)) and value <= _HIGH)
        )

    def _reason(self, clip: cst.Call | cst.For, owner: cst.FunctionDef | cst.Module, updates: list[Update]) -> str:
        facts, flow = self.facts.updates, self.facts.flow(owner)
        clears = facts.clears(owner)
        if len(clears) != len(facts.clears_of(owner, updates[0].optimizer)):
            clears = [each for each in clears if self._clears_all(each, clip, updates[0])]
        backwards = facts.backwards(owner)
        if not clears or not backwards or facts.handles_gradients(owner, besides=clip):
            return ""
        steps = [each for each in facts.own(owner) if self._may_step(each)]
        if any(not flow.reaches(clip, [each]) and not flow.reaches(each, [clip]) for each in clears):
            return ""  # clears in a branch of its own
        hidden = [each for each in facts.own(owner) if _MAYBE_BACKWARD.search(self.names.method(each))]
        hidden = [each for each in hidden if not facts.is_quiet(each)]
        if not any(flow.reaches(each, [clip], avoiding=clears) for each in (*backwards, *hidden)):
            return "when there are none yet" if isinstance(clip, cst.Call) else ""  # `None.clamp_` would have raised
        if flow.reaches(clip, clears) and not any(flow.reaches(clip, [each], avoiding=clears) for each in steps):
            return "that are cleared before any step uses them"
        if self._is_last(clip, clears, steps, owner):
            return "that the next call clears before it steps"
        return ""

    def _is_last(self, clip: cst.Call | cst.For, clears: list[cst.Call], steps: list[cst.Call], owner: Owner) -> bool:
        """Whether a function that updates once clips behind its step, and clears before it in each call."""
        flow = self.facts.flow(owner)
        if not isinstance(owner, cst.FunctionDef) or self.tree.loops(clip) or flow.reaches(clip, [*steps, *clears]):
            return False
        return (
            bool(steps) and all(flow.always_before(each, clears) for each in steps) and flow.always_before(clip, steps)
        )

    def _clears_all(self, clear: cst.Call, clip: cst.Call | cst.For, update: Update) -> bool:
        """Whether a `zero_grad()` clears what is clipped: of the optimizer, or of the module whose parameters they are."""
        receiver = self.names.key(clear.func.value) if isinstance(clear.func, cst.Attribute) else ""
        given = self.names.argument(clip, "parameters", 0) if isinstance(clip, cst.Call) else None
        drawn = clip.iter if isinstance(clip, cst.For) else given.value if given is not None else None
        clipped = drawn.func if isinstance(drawn, cst.Call) else None
        module = self.names.key(clipped.value) if isinstance(clipped, cst.Attribute) else ""
        return bool(receiver) and receiver in {self.names.key(update.optimizer), module}

    def _may_step(self, call: cst.Call) -> bool:
        if self.names.method(call) == "step":
            return not self.facts.updates.is_scheduler_step(call)
        return self.facts.steps.leads(call, lambda each: self.names.method(each) == "step")

    def _draft(self, clip: cst.Call, updates: list[Update]) -> Draft | None:
        statement = self.tree.statement(clip)
        if len(updates) != 1 or updates[0].scaler is not None or not isinstance(statement, cst.Expr):
            return None
        return move_before(self.code, statement, self.tree.statement(updates[0].call))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients that are clipped where there are none, or where the step has used them."""
        for path in entry.paths:
            for event, is_late in _misplaced(path):
                what = "that the step has used already" if is_late else "that no backward pass has made yet"
                yield Fault.at(event, f"clips gradients {what}, so it changes nothing")


def _misplaced(path: Path) -> Iterator[tuple[Clipped, bool]]:
    """The calls that clip between a step and the next pass: whether what they find has been used, or cleared already."""
    state: dict[Tensor, str] = {}
    early: list[Clipped] = []
    for event in path.events:
        if isinstance(event, Backward):
            reached = set(event.parameters)
            yield from ((each, False) for each in early if reached & set(each.parameters))
            state.update(dict.fromkeys(event.parameters, "added"))
            early = []
        elif isinstance(event, Cleared):
            state.update(dict.fromkeys(event.parameters, "cleared"))
        elif isinstance(event, Stepped):
            state.update({each: "stepped" for each in event.parameters if state.get(each) == "added"})
        elif isinstance(event, Clipped) and event.parameters and _limits(event) and not event.where.phase:
            found = {"" if each.escaped else state.get(each) for each in event.parameters}
            if found == {"stepped"}:
                yield event, True
            elif found == {"cleared"}:
                early.append(event)


def _limits(event: Clipped) -> bool:
    """Whether a call may do more than measure the norm: its limit is not so high that nothing is above it."""
    limit = number_of(event.limit)
    return event.limit is not None and (limit is None or limit < _HIGH)
