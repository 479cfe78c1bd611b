from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import BatchMixed

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_LAYERS = re.compile(r"\b(?:LSTM|GRU|RNN|MultiheadAttention|Transformer\w*)\(")


class BatchTakenForSequence(Check):
    users_with = ("DataLoader",)

    def wants_passes(self) -> bool:
        return bool(_LAYERS.search(self.facts.source.text))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Layers that take the batch as their second dimension, and are used as if it was their first."""
        for event in entry.of(BatchMixed):
            layer = event.layer
            if layer.site is None or layer.escaped:
                continue
            what = (
                "gets batches with the examples first"
                if event.how == "is given"
                else "has its result reduced over the second one as if that was the steps"
            )
            message = f"`{layer.name}` without `batch_first` takes the second dimension for the examples, and {what}: it mixes the examples of a batch"
            yield Fault(layer.site, message, None, (event.site,))
