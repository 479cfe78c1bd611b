from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured, ScheduleStepped, Stepped
from lightlint.explore.questions.queries import in_sight
from lightlint.facts.lightning.hooks import TRAINING_STEP
from lightlint.facts.project.mentions import occurs
from lightlint.text import words_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


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
                if trained and event.automatic is False and in_sight([schedule]) and schedule.site not in stepped:
                    name = event.module.name
                    message = (
                        f"nothing steps this scheduler: `{name}` optimizes by hand, so the learning rate never changes"
                    )
                    if schedule.site is not None:
                        yield Fault(schedule.site, message, also=tuple(call.site for call in event.where.calls))
