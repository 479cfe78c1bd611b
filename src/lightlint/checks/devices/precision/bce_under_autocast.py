from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LossComputed
from lightlint.finding import Tier
from lightlint.values.core import is_constant, text_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_LOSSES = {"binary_cross_entropy", "BCELoss"}


class BceUnderAutocast(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses of probabilities that are computed while autocast for CUDA is on."""
        for event in entry.of(LossComputed):
            context = event.where.autocast
            tier = _tier(context) if event.function in _LOSSES and context is not None else None
            if tier is not None:
                message = "binary cross entropy of probabilities under autocast raises on CUDA"
                yield Fault.at(event, message, tier=tier)


def _tier(context: Instance) -> Tier | None:
    """How sure it is that an autocast is on and for CUDA; None where it is not."""
    enabled, device = context.arguments.get("enabled"), context.arguments.get("device_type")
    if is_constant(enabled, False) or context.open_arguments:
        return None
    kind = text_of(device) if device is not None else "cuda"
    return Tier.WARNING if kind is None else Tier.ERROR if kind.startswith("cuda") else None
