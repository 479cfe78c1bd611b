from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import DimensionsMixed

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_WORDS = re.compile(r"\b(?:view|reshape)\b")


class ViewMixesDimensions(Check):
    def wants_passes(self) -> bool:
        return _WORDS.search(self.facts.source.text) is not None

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Views that are given the sizes of a tensor's own dimensions in another order."""
        for event in entry.of(DimensionsMixed):
            message = f"`{event.how}` puts the dimensions in another order without moving a number: rows of one become parts of another"
            yield Fault.at(event, message)
