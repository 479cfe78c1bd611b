from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, SplitDrawn
from lightlint.models.data.learning import learns

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class FittedBeforeSplit(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Transformers that were fitted on all rows before some are set aside for a test."""
        for path in entry.paths:
            fitted = [event for event in path.of(Called) if event.path.startswith("fit_") and _learns(event)]
            for split in path.of(SplitDrawn):
                before = [each for each in fitted if each.time < split.time]
                if split.name == "train_test_split" and "fitted" in split.data[0].traits and before:
                    event = before[-1]
                    shown = event.receiver.name if event.receiver is not None else ""
                    message = (
                        f"`{shown}.{event.path}` sees the rows that `train_test_split` sets aside: they are no test "
                        "any more"
                    )
                    yield Fault.at(event, message, split.site)


def _learns(event: Called) -> bool:
    return event.receiver is not None and event.receiver.kind == "estimator" and learns(event.receiver)
