from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import Decoded
from lightlint.values.core import LEFT_OUT, Unknown

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class IgnoredLabelsDecoded(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Labels that are made texts of with the -100 in them."""
        for event in entry.of(Decoded):
            if isinstance(event.ids, Unknown) and event.ids.traits & LEFT_OUT:
                yield Fault.at(event, "the labels are decoded with the -100 that fill them up, which is no token's id")
