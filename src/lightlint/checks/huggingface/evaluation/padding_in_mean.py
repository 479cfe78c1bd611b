from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import PlacesAveraged

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class PaddingInMean(Check):
    users_with = ("DataLoader", "optim.", "torch.optim")

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Means over all places of texts that were filled up."""
        for event in entry.of(PlacesAveraged):
            if not event.encoding.asked and event.encoding.side is not None:
                message = "the mean is taken over the padding, too: a text's vector hangs on how long the others of its batch are"
                yield Fault.at(event, message, event.encoding.site)
