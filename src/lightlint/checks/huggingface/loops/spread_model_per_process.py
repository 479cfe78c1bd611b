from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.values.core import text_of
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_DDP = "torch.nn.parallel.DistributedDataParallel"
_SPREADING = ("auto", "balanced", "balanced_low_0", "sequential")


class SpreadModelPerProcess(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Models that are spread over all GPUs and then trained by an Accelerator, or under DDP, once in each process."""
        for name, whose in ((".prepare", "of the Accelerator "), (".prepare_model", "of the Accelerator "), (_DDP, "")):
            for event in entry.calls.get(name, ()):
                if name != _DDP and (event.receiver is None or event.receiver.kind != "accelerator"):
                    continue
                for each in event.given.values():
                    base = each.unwrapped() if isinstance(each, Module) else None
                    spread = text_of(base.arguments.get("device_map")) if base is not None else None
                    if base is not None and base.site is not None and spread in _SPREADING:
                        message = f'`device_map="{spread}"` spreads the model over all GPUs, and each process {whose}trains one'
                        yield Fault(base.site, message, None, (event.site,))
