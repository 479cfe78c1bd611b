from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import StatesMixed

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_LAYERS = re.compile(r"\b(?:LSTM|GRU|RNN)\b")
_VIEWS = re.compile(r"\b(?:view|reshape)\b")


class FinalStatesMixed(Check):
    def wants_passes(self) -> bool:
        text = self.facts.source.text
        return bool(_LAYERS.search(text) and _VIEWS.search(text))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Views that give a row the final states of several examples, and not those of one in all layers and directions."""
        for event in entry.of(StatesMixed):
            if not event.layer.escaped:
                message = f"the final states of `{event.layer.name}` have the layers and directions first: `{event.how}` puts those of other examples into a row"
                yield Fault.at(event, message)
