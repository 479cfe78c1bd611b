from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Masked
from lightlint.models.sequences.masks import ONE, PADDING, WORDS

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class PaddingMaskInverted(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Masks with which attention looks at the padding of texts, and at nothing else."""
        message = "the mask is the wrong way round where it is used: attention looks at the padding, and at no word"
        for event in entry.of(Masked):
            mask = event.mask
            wrong = mask.kind == (PADDING if event.kept else WORDS) and mask.dimensions[-1:] != (ONE,)
            said = event.by_name or mask.pads
            if wrong and said and (mask.ids is None or mask.ids.embedded):
                yield Fault(event.site, message, None, (mask.site,), event.where.places[1:])
