from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured
from lightlint.explore.questions.defaults import of_default_run
from lightlint.explore.questions.queries import in_sight, sure
from lightlint.values.core import number_of, written

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ManualTrainerClipAccumulate(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Trainers told to clip or to accumulate for a module that optimizes by hand, on each path."""
        for name in ("gradient_clip_val", "accumulate_grad_batches"):
            options = [event.trainer.arguments.get(name) for event in entry.of(Configured)]
            for event in sure(of_default_run(entry, options), Configured, partial(_acts, name)):
                if event.trainer.site is not None:
                    message = f"`{name}` with `{event.module.name}`, which optimizes by hand: `fit` raises"
                    yield Fault(event.trainer.site, message, of_call=True)


def _acts(name: str, event: Configured) -> bool:
    number = number_of(written(event.trainer.arguments.get(name)))
    known = event.automatic is False and not event.trainer.open_arguments and in_sight([event.module])
    return known and number is not None and number > (1 if name == "accumulate_grad_batches" else 0)
