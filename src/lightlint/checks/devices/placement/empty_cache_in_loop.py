from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Called, Event, Stepped
from lightlint.explore.questions.queries import speaks_of, with_each_batch
from lightlint.finding import Tier
from lightlint.fixes.edits import drop_statement

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_TRAINING_HOOKS = ("training_step", "on_train_", "optimizer_", "on_before_", "on_after_backward")
_ASKED = re.compile(r"empty|cache|clear|memory", re.IGNORECASE)


class EmptyCacheInLoop(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Calls that come with each batch."""
        for path in entry.paths:
            training = {turn.loop for step in path.of(Backward) for turn in step.where.turns}
            calls = (each for each in path.of(Called) if each.path == "torch.cuda.empty_cache")
            for event in with_each_batch(path, calls):
                if _trains_in_rounds(path, event) or _is_asked_for(event):
                    continue
                where = f"each `{event.where.hook}`" if event.where.hook else "each batch"
                message = f"`empty_cache()` in {where} hands the allocator's blocks back to the driver"
                hooked = event.where.hook.startswith(_TRAINING_HOOKS) if event.where.hook else False
                trains = event.where.grad and (hooked or any(turn.loop in training for turn in event.where.turns))
                yield Fault.of(event, message, tier=None if trains else Tier.NOTE)

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        statement = self.tree.statement(node)
        if not isinstance(statement, cst.Expr) or statement.value is not node:
            return None
        return Repair("drop the call", drop_statement(self.code, statement))


def _is_asked_for(event: Event) -> bool:
    """Whether an open test asks for it by name, as an option for a GPU that is nearly full: who sets it knows what it costs."""
    return any(not each.known and speaks_of(each.key, _ASKED) for each in event.where.conditions)


def _trains_in_rounds(path: Path, event: Event) -> bool:
    """Whether whole loops over batches are trained in each turn, as between the samples of reinforcement learning."""
    depth = len(event.where.turns)
    steps = (step.where.turns for step in path.of(Stepped))
    return any(
        turns[:depth] == event.where.turns and any(turn.loop.kind == "batch" for turn in turns[depth:])
        for turns in steps
    )
