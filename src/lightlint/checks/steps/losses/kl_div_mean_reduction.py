from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LossComputed
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class KlDivMeanReduction(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Divergences that are divided by the number of all elements."""
        for event in entry.of(LossComputed):
            named = event.function in ("kl_div", "KLDivLoss") and event.reduction == "mean"
            if named and isinstance(event.input, Tensor) and event.input.role == "log-probabilities":
                message = 'reduction "mean" divides the divergence by the number of classes, too'
                yield Fault(event.made or event.site, message, None, (event.site,))
