from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Misused
from lightlint.explore.questions.queries import sure
from lightlint.values.training import Loader

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_RUNS = {"val_dataloaders": ("fit", "validate"), "test_dataloaders": ("test",), "predict_dataloaders": ("predict",)}


class ValDataloadersIndexed(Check):
    def stands(self) -> bool:
        return not self.facts.project.users(self.facts.path, "Trainer")  # others may give lists

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        if not self.facts.lightning.surely_at_least("2.0"):
            return
        for event in sure(entry, Misused, lambda event: event.asked == "[]" and event.value.giver in _RUNS):
            giver = event.value.giver
            run = next((each for each in _RUNS[giver] if f".{each}" in entry.calls), _RUNS[giver][0])
            if isinstance(event.value, Loader):
                yield Fault.at(
                    event, f"`trainer.{giver}` is the one `DataLoader` that `{run}` gets, no list: it raises"
                )
