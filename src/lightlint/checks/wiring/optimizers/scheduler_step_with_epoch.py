from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import ScheduleStepped
from lightlint.explore.questions.queries import counts_batches, in_batch, inside, loader_lengths
from lightlint.finding import Applicability
from lightlint.fixes.edits import remove_argument
from lightlint.values.core import Library

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_SCHEDULERS = "torch.optim.lr_scheduler."
_OF_TURN = ("index", "periodic", "count", "last", "batches")


class SchedulerStepWithEpoch(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        lengths = loader_lengths(entry)
        for path in entry.paths:
            for event in _repeated(path, lengths):
                start = "`step` with the number of the epoch: the scheduler, stepped after each batch,"
                yield Fault.at(event, f"{start} stays where an epoch starts")

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        if not isinstance(node, cst.Call) or len(node.args) != 1:
            return None
        draft = remove_argument(self.code, node, node.args[0])
        return Repair("step without a number", draft, Applicability.UNSAFE)


def _repeated(path: Path, lengths: frozenset[Hashable]) -> Iterator[ScheduleStepped]:
    """Steps of a schedule after each batch to the number that it was set to after the batch before."""
    before: dict[object, ScheduleStepped] = {}
    for event in path.of(ScheduleStepped):
        if event.implicit or len(event.args) != 1 or not in_batch(event.where) or not _counts_steps(event, lengths):
            continue
        last = before.get(event.schedule)
        before[event.schedule] = event
        if last is None or last.site != event.site or event.args[0].key is None:
            continue
        around = last.where.turns[:-1] == event.where.turns[:-1] and last.where.turns != event.where.turns
        if around and last.args[0].key == event.args[0].key and not any(map(event.where.depends_on, _OF_TURN)):
            yield event


def _counts_steps(event: ScheduleStepped, lengths: frozenset[Hashable]) -> bool:
    """Whether a schedule is torch's, and is to be stepped after each batch."""
    cls = event.schedule.cls
    known = isinstance(cls, Library) and cls.path.startswith(_SCHEDULERS) and cls.last != "ReduceLROnPlateau"
    return known and (inside(event.where, "lr_scheduler_step") or counts_batches(event.schedule.length, lengths))
