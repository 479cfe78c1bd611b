from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LossComputed
from lightlint.values.core import Method
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_SAMPLING = ("NeighborLoader", "NeighborSampler")


class NeighboursNotCutOff(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses over all nodes of a sampled neighbourhood, labels of neighbours included."""
        for event in entry.of(LossComputed):
            target = event.target
            batch = target.receiver if isinstance(target, Method) and target.name == "y" else None
            loader = batch.batch_of if isinstance(batch, Tensor) else None
            if loader is not None and loader.name in _SAMPLING:
                message = "the loss takes in the sampled neighbours, whose own neighbourhood is cut off: the seeds are the first `batch_size` nodes"
                yield Fault.at(event, message)
