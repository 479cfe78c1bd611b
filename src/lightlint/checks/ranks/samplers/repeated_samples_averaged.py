from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Averaged, BatchDrawn
from lightlint.values.core import is_constant
from lightlint.values.training import Instance, Loader

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class RepeatedSamplesAveraged(Check):
    of_several_processes = True
    users_with = ("DataLoader",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Sums over shards that a sampler has filled up, divided by the size of the data set."""
        for path in entry.paths:
            for event in path.of(Averaged):
                before = [each.loader for each in path.of(BatchDrawn) if each.time < event.time]
                shard = before[-1] if before else None
                if shard is not None and _counts(shard, event) and _fills_up(shard):
                    also = () if shard.site is None else (shard.site,)
                    message = "the sampler repeats samples until each rank has as many: they count twice in this sum, and not in the size of the data set"
                    yield Fault.at(event, message, *also)


def _counts(loader: Loader, event: Averaged) -> bool:
    """Whether a number is that of the samples that a loader draws from."""
    data = loader.data
    number = data.number if isinstance(data, Instance) else data.key if data is not None else None
    return number is not None and event.count.key == ("length", number)


def _fills_up(loader: Loader) -> bool:
    """Whether the samples of a loader are those of one rank, and some of them others' too."""
    sampler = loader.sampler
    if not isinstance(sampler, Instance) or sampler.name != "DistributedSampler" or sampler.open_arguments:
        return False
    drops = sampler.argument("drop_last", 5)
    return (
        (drops is None or is_constant(drops, False))
        and not loader.open_arguments
        and "#managed" not in loader.attributes
    )
