from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Masked
from lightlint.models.sequences.masks import FUTURE, PAST

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site

_MAKING = re.compile(r"\btri[ul]\b")


class CausalMaskInverted(Check):
    asks_rest = frozenset(["triu", "tril"])

    def wants_passes(self) -> bool:
        return bool(_MAKING.search(self.facts.source.text))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Masks that leave each position what comes behind it, and nothing of what it may see."""
        used: dict[Site, list[Masked]] = defaultdict(list)
        for event in entry.of(Masked):
            if event.mask.kind in (FUTURE, PAST):
                used[event.mask.site].append(event)
        for made, events in used.items():
            faults = [each for each in events if each.kept == (each.mask.kind == FUTURE)]
            message = "the mask is the wrong way round where it is used: each position sees what comes behind it, and nothing else"
            if len(faults) == len(events):
                yield Fault(made, message, None, (events[0].site,))
            else:
                yield from (Fault.at(each, message) for each in faults)
