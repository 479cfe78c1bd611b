from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import SampleMade
from lightlint.engine.events.huggingface import ColumnAsked
from lightlint.frameworks.huggingface.columns import collates_itself, drops, narrows
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ColumnDropped(Check):
    users_with = ("TrainingArguments",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Columns that a `compute_loss`, a collator or a transform asks for, and that the Trainer drops, for the model takes
        no such argument."""
        for event in entry.of(ColumnAsked):
            trainer = event.trainer
            if isinstance(trainer, Instance) and (event.in_rows or not collates_itself(trainer)):
                yield from _fault(event, trainer)
        for sample in entry.of(SampleMade):
            for each in sample.events:
                if isinstance(each, ColumnAsked) and isinstance(each.trainer, Instance):
                    yield from _fault(each, each.trainer)


def _fault(event: ColumnAsked, trainer: Instance) -> Iterator[Fault]:
    if narrows(trainer) and drops(trainer, event.name):
        where = "row" if event.in_rows else "batch"
        message = f"the Trainer drops `{event.name}`, which the model takes no argument for: there is no such key in the {where}"
        yield Fault.at(event, message)
