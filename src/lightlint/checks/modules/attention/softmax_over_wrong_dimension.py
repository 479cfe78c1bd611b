from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import WeightsUsed

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site

_SOFTMAX = re.compile(r"\b[sS]oftmax\b")
_PRODUCT = re.compile(r"@|\b(?:matmul|bmm|einsum)\b")


class SoftmaxOverWrongDimension(Check):
    def wants_passes(self) -> bool:
        text = self.facts.source.text
        return bool(_SOFTMAX.search(text) and _PRODUCT.search(text))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Weights of attention that add up to 1 over another dimension than the one over which they are summed.

        What a loop makes of agreement, and has weigh the first time before there is any, is routing between capsules.
        """
        used: dict[Site, list[WeightsUsed]] = defaultdict(list)
        for event in entry.of(WeightsUsed):
            used[event.weights.site].append(event)
        for site, events in used.items():
            if not any(each.right or not each.weights.scored for each in events):
                message = f"the softmax goes over dimension {events[0].weights.dimension} of the scores, and the weights are summed over another: those that a query gives its keys do not add up to 1"
                yield Fault(site, message, None, (events[0].site,))
