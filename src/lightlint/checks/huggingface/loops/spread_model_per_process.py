from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called
from lightlint.explore.questions.queries import sure
from lightlint.finding import Tier
from lightlint.values.core import text_of
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_DDP = "torch.nn.parallel.DistributedDataParallel"
_OF_ACCELERATOR = ("prepare", "prepare_model")
_SPREADING = ("auto", "balanced", "balanced_low_0", "sequential")


class SpreadModelPerProcess(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Models that are spread over all GPUs and then trained by an Accelerator, or under DDP, once in each process.

        Where the map hangs on an option, each run may be of one process that is told to spread its model, or of several that
        are not: a note.
        """
        certain = {event.site for event in sure(entry, Called, lambda event: any(_spread(event)))}
        for event in entry.of(Called):
            whose = "" if event.path == _DDP else "of the Accelerator "
            for base, how in _spread(event):
                message = f'`device_map="{how}"` spreads the model over all GPUs, and each process {whose}trains one'
                if base.site is not None:
                    tier = None if event.site in certain else Tier.NOTE
                    yield Fault(base.site, message, tier, (event.site,))


def _spread(event: Called) -> Iterator[tuple[Module, str]]:
    """The models that a call takes to train one in each process, and that are spread over all GPUs."""
    for each in event.given.values() if _takes_one_each(event) else ():
        base = each.unwrapped() if isinstance(each, Module) else None
        how = text_of(base.arguments.get("device_map")) if base is not None else None
        if base is not None and how in _SPREADING:
            yield base, how


def _takes_one_each(event: Called) -> bool:
    if event.receiver is None:
        return event.path == _DDP
    return event.receiver.kind == "accelerator" and event.path in _OF_ACCELERATOR
