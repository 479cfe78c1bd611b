from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import ScheduleMade, ScheduleStepped, StateLoaded, Stepped
from lightlint.explore.questions.queries import beside, in_batch
from lightlint.finding import Tier
from lightlint.values.core import Sequence, Value, is_constant, number_of
from lightlint.values.training import Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_ROOM = "torch.optim.lr_scheduler."
# these multiply the rate that they find when they are made, and take it for scaled from then on
_FACTORS = {f"{_ROOM}LinearLR": "start_factor", f"{_ROOM}ConstantLR": "factor"}
_JOINING = {f"{_ROOM}SequentialLR", f"{_ROOM}ChainedScheduler"}
# these go on from the rate they find; the others work each one out anew
_STEPWISE = {
    f"{_ROOM}{name}"
    for name in (
        "LinearLR",
        "ConstantLR",
        "StepLR",
        "MultiStepLR",
        "ExponentialLR",
        "PolynomialLR",
        "CosineAnnealingLR",
    )
}

# these set the rate of their beginning when they are made, and the right one with their next step
_ANEW = {"LambdaLR", "OneCycleLR", "CosineAnnealingWarmRestarts", "CyclicLR"}
_SCALED = "`{}` scales the learning rate that `load_state_dict` brought back, and its own state does not undo that"
_ANEW_FOR = (
    "`{}` puts its first learning rate in the place of the one that `load_state_dict` brought back, for an epoch"
)


class SchedulerMadeAfterOptimizerLoad(Check):
    def _sets_rate(self) -> bool:
        """Whether the file writes learning rates itself."""
        targets = (each.target for each in self.tree.all(cst.AssignTarget))
        return any(
            isinstance(each, cst.Subscript)
            and isinstance(index := each.slice[0].slice, cst.Index)
            and self.names.constant(index.value) == "lr"
            for each in targets
        )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Schedules that scale the rate when they are made, behind the load of their optimizer and before their own."""
        for path in entry.paths:
            loads = path.of(StateLoaded)
            for made in path.of(ScheduleMade):
                optimizer, name = made.schedule.optimizer, _scaling(made.schedule)
                late = "" if name else _starting_anew(path, made.schedule)
                if not (name or late) or optimizer is None:
                    continue
                own = [each for each in loads if each.object is made.schedule and each.time > made.time]
                before = [each for each in loads if each.object is optimizer and each.time < made.time]
                again = any(each.object is optimizer and each.time > made.time for each in loads)
                if own and before and not again and not self._sets_rate():
                    message, tier = (_SCALED.format(name), None) if name else (_ANEW_FOR.format(late), Tier.WARNING)
                    yield Fault(beside(made, before[-1]), message, tier, also=(made.site,))


def _starting_anew(path: Path, schedule: Schedule) -> str:
    """The name of a schedule that sets its first rate when it is made, and the right one an epoch later."""
    if schedule.name not in _ANEW or schedule.open_arguments or not _is_unset(schedule):
        return ""
    steps = [event for event in path.of(ScheduleStepped) if event.schedule is schedule]
    trained = any(event.optimizer is schedule.optimizer and in_batch(event.where) for event in path.of(Stepped))
    return schedule.name if steps and trained and not any(in_batch(each.where) for each in steps) else ""


def _is_unset(schedule: Schedule) -> bool:
    """Whether a schedule is not told where to go on."""
    last = schedule.argument("last_epoch", 4)
    return last is None or is_constant(last, -1)


def _scaling(schedule: Value) -> str:
    """The name of a schedule that scales the rate as soon as it is made, empty for another."""
    if not isinstance(schedule, Schedule) or schedule.open_arguments:
        return ""
    full, given = f"{_ROOM}{schedule.name}", schedule.arguments
    if not _is_unset(schedule):
        return ""
    if full in _FACTORS:
        factor = number_of(given.get(_FACTORS[full]))
        return schedule.name if _FACTORS[full] not in given or (factor is not None and factor != 1) else ""
    parts = given.get("schedulers")
    held = parts.items if isinstance(parts, Sequence) and not parts.more else []
    if full.endswith("SequentialLR"):
        return schedule.name if held and f"{_ROOM}{getattr(held[-1], 'name', '')}" in _STEPWISE else ""
    return next(filter(None, map(_scaling, held)), "") if full in _JOINING else ""
