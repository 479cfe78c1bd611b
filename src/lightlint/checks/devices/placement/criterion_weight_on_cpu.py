from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import DevicesMixed

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_NN = "torch.nn."
_WEIGHTS = {  # which arguments of a loss are tensors that have to be where its input is
    f"{_NN}CrossEntropyLoss": ("weight",),
    f"{_NN}NLLLoss": ("weight",),
    f"{_NN}MultiMarginLoss": ("weight",),
    f"{_NN}BCELoss": ("weight",),
    f"{_NN}BCEWithLogitsLoss": ("weight", "pos_weight"),
}


class CriterionWeightOnCpu(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Weights of losses on the CPU that meet what is on a GPU."""
        for event in entry.of(DevicesMixed):
            weight = event.on_cpu
            if weight.buffer and weight.sure_device and f"{_NN}{event.operation}" in _WEIGHTS and not weight.escaped:
                message = (
                    f"the weight of this `{event.operation}` stays on the CPU, and what it is given here is on a GPU"
                )
                yield Fault.of(event, message)
