from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, ScheduleStepped, Stepped
from lightlint.explore.questions.queries import in_batch
from lightlint.frameworks.fabric import PREPARED
from lightlint.models.data.loaders import OF_ONE_PROCESS
from lightlint.values.core import is_constant
from lightlint.values.training import Instance, Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class PreparedScheduleSteps(Check):
    of_several_processes = True

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Schedules that an Accelerator steps once for each process, and that count the steps of one."""
        loops = [[turn.loop.site for turn in each.where.turns] for each in entry.of(Backward)]
        inner, outer = {each[-1] for each in loops if each}, {site for each in loops for site in each[:-1]}
        inner |= {
            each.where.turns[-1].loop.site for each in entry.of(Stepped) if each.where.turns
        }  # passes are added up
        for event in entry.of(ScheduleStepped):
            schedule = event.schedule
            if not _steps_for_each(schedule) or event.args or not event.where.turns:
                continue
            length = schedule.length
            own = event.where.turns[-1].loop.site
            if own in outer - inner and not in_batch(event.where):
                message = "a prepared schedule takes a step for each process: stepped once an epoch, it is on n GPUs n epochs ahead"
                yield Fault.at(event, message)
            elif (
                own in inner and length is not None and OF_ONE_PROCESS in length.traits and "world" not in length.traits
            ):
                message = "the schedule's length counts the batches of one process, and once prepared it takes a step for each: it ends too early"
                yield Fault(schedule.site or event.site, message, None, (event.site,))


def _steps_for_each(schedule: Schedule) -> bool:
    """Whether an Accelerator surely takes several steps for one, where several processes run."""
    by = schedule.attributes.get(PREPARED)
    if not isinstance(by, Instance) or by.escaped or by.open_arguments or schedule.escaped:
        return False
    told = [by.arguments.get(name) for name in ("split_batches", "dataloader_config")]
    with_optimizer = by.arguments.get("step_scheduler_with_optimizer")
    apart = with_optimizer is not None and not is_constant(with_optimizer, True)
    return not apart and all(each is None or is_constant(each, False, None) for each in told)
