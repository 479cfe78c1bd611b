from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import ScheduleMade, StateLoaded
from lightlint.explore.queries import beside
from lightlint.values.core import Sequence, Value, is_constant, number_of
from lightlint.values.training import Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

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
                if not name or optimizer is None:
                    continue
                own = [each for each in loads if each.object is made.schedule and each.time > made.time]
                before = [each for each in loads if each.object is optimizer and each.time < made.time]
                again = any(each.object is optimizer and each.time > made.time for each in loads)
                if own and before and not again and not self._sets_rate():
                    message = f"`{name}` scales the learning rate that `load_state_dict` brought back, and its own state does not undo that"
                    yield Fault(beside(made, before[-1]), message, also=(made.site,))


def _scaling(schedule: Value) -> str:
    """The name of a schedule that scales the rate as soon as it is made, empty for another."""
    if not isinstance(schedule, Schedule) or schedule.open_arguments:
        return ""
    full, given = f"{_ROOM}{schedule.name}", schedule.arguments
    last = given.get("last_epoch", given.get("#4"))
    if last is not None and not is_constant(last, -1):
        return ""
    if full in _FACTORS:
        factor = number_of(given.get(_FACTORS[full], given.get("#1")))
        unset = _FACTORS[full] not in given and "#1" not in given
        return schedule.name if unset or (factor is not None and factor != 1) else ""
    parts = given.get("schedulers", given.get("#0" if full.endswith("ChainedScheduler") else "#1"))
    held = parts.items if isinstance(parts, Sequence) and not parts.more else []
    if full.endswith("SequentialLR"):
        return schedule.name if held and f"{_ROOM}{getattr(held[-1], 'name', '')}" in _STEPWISE else ""
    return next(filter(None, map(_scaling, held)), "") if full in _JOINING else ""
