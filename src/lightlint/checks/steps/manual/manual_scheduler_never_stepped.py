from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured, ScheduleStepped, Stepped
from lightlint.explore.questions.queries import in_sight
from lightlint.facts.lightning.hooks import TRAINING_STEP
from lightlint.facts.project.mentions import occurs
from lightlint.text import words_of
from lightlint.values.core import Constant, Function, Sequence

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.training import Schedule


_ASKED = r"(?<!self)\.lr_schedulers\s*\("  # of a module, by a callback
_OF_TRAINER = {"lr_scheduler_configs", "lr_scheduler_step"}


class ManualSchedulerNeverStepped(Check):
    def stands(self) -> bool:
        """Whether no file that uses the module, and no callback of another file, looks its schedules up."""
        project, source = self.facts.project, self.facts.source
        if not _OF_TRAINER.isdisjoint(words_of(source.text)):
            return False
        asked = occurs(project, "lr_schedulers", _ASKED, Path(source.filename).absolute())
        return not asked and not project.users(self.facts.path, "lr_schedulers", TRAINING_STEP)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Schedules that Lightning is given and nothing steps, on any path that came to its end."""
        if not all(path.finished for path in entry.paths):
            return
        stepped = {event.schedule.site for event in entry.of(ScheduleStepped)}
        trained = any(entry.of(Stepped))
        for event in entry.of(Configured):
            for schedule in (each.schedule for each in event.schedules):
                if schedule.site in stepped or self._changes_nothing(schedule):
                    continue
                if trained and event.automatic is False and in_sight([schedule]):
                    name = event.module.name
                    message = (
                        f"nothing steps this scheduler: `{name}` optimizes by hand, so the learning rate never changes"
                    )
                    if schedule.site is not None:
                        yield Fault(schedule.site, message, also=tuple(call.site for call in event.where.calls))

    def _changes_nothing(self, schedule: Schedule) -> bool:
        """Whether its function gives one number in each epoch, and no attribute that this is read from is set twice."""
        rate = schedule.arguments.get("lr_lambda")
        rate = rate.items[0] if isinstance(rate, Sequence) and rate.items else rate
        if not isinstance(schedule.factor, Constant) or not isinstance(rate, Function):
            return False
        read = {each.attr for each in ast.walk(rate.node) if isinstance(each, ast.Attribute)}
        text = self.facts.source.text
        return all(len(re.findall(rf"\.{name}\b[ \t]*(?:[-+*/]=|=(?!=))", text)) < 2 for name in read)
