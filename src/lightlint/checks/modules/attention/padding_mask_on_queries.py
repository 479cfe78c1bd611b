from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Masked
from lightlint.models.sequences.masks import ONE, PADDING, WORDS

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class PaddingMaskOnQueries(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Masks of the padding that stand beside the queries of attention, where none stands beside its keys."""
        message = "this mask leaves out rows of the scores, those of padded queries, and every word still looks at the padding: its last dimension is to count the keys"
        used = [event for event in entry.of(Masked) if event.mask.dimensions and event.mask.kind in (PADDING, WORDS)]
        right = {event.mask.ids for event in used if event.mask.dimensions[-1] != ONE}
        for event in used:
            ids = event.mask.ids
            if event.mask.dimensions[-1] == ONE and ids is not None and ids.embedded and ids not in right:
                yield Fault(event.mask.site, message, None, (event.site,))
