from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import PoleReached

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_ROOTS = re.compile(r"\b(?:sqrt|acos|arccos)\b|\*\*\s*0?\.5\b|\bpow\b")
_COSINES = re.compile(r"\bnormalize\b|\bnorm\b|\bcosine_similarity\b|\bCosineSimilarity\b|\bvector_norm\b")


class CosineAtItsPole(Check):
    def wants_passes(self) -> bool:
        text = self.facts.source.text
        return bool(_ROOTS.search(text) and _COSINES.search(text))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients that are infinite where two vectors have one direction, or opposite ones."""
        for event in entry.of(PoleReached):
            what = "`sqrt` of 1 - cosine²" if event.function == "sqrt" else f"`{event.function}` of a cosine"
            message = f"{what} has an infinite gradient where the cosine is 1 or -1, and from there on the weights are nan: nothing keeps it away from there"
            yield Fault.at(event, message)
