from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, PaddingRead
from lightlint.explore.questions.certain import anyhow
from lightlint.values.core import Sequence

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LastStepIsPadding(Check):
    asks_passes = True

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Last steps of sequences that were packed with lengths of their own."""
        lengths = [event.argument("lengths", 1) for event in entry.of(Called) if event.name == "pack_padded_sequence"]
        equal = any(isinstance(each, Sequence) or getattr(each, "origin", None) is not None for each in lengths)
        for event in anyhow(entry.of(PaddingRead)) if lengths and not equal else ():
            message = (
                "the last step of a padded batch is padding for all but the longest sequences, which give zeros here"
            )
            yield Fault.of(event, message)
