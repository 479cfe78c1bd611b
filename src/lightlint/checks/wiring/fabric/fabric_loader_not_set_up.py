from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, BatchDrawn
from lightlint.explore.questions.queries import in_sight, may_be_alone
from lightlint.facts.ranks.trainers import lightning_ranks
from lightlint.facts.ranks.world import Ranks
from lightlint.finding import Tier
from lightlint.values.core import NONE, is_constant
from lightlint.values.training import Instance, Loader

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_TOLD = "not set up by Fabric: every rank trains on the whole data set, in batches left on the CPU"


class FabricLoaderNotSetUp(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Loops over a plain loader in whose turns Fabric's `backward` runs."""
        passes = [event for event in entry.of(Backward) if event.via == "fabric"]
        ranks = lightning_ranks(self.facts) if passes else Ranks.ONE
        if ranks is Ranks.ONE:
            return
        trained = {turn.loop.over for event in passes for turn in event.where.turns[-1:]}
        for event in entry.of(BatchDrawn):
            loader = event.loader
            if loader not in trained or not _is_whole(loader) or may_be_alone(event.where):
                continue
            if ranks is Ranks.MANY and self._is_told(loader):
                continue
            yield Fault.at(event, f"this loader is {_TOLD}", tier=None if ranks is Ranks.MANY else Tier.NOTE)

    def _is_told(self, loader: Loader) -> bool:
        """Whether loader-without-distributed-sampler speaks of it: it knows where the data comes from."""
        return isinstance(loader.data, Instance) and in_sight([loader.data])


def _is_whole(loader: Loader) -> bool:
    """Whether a loader that nobody set up goes through all of a data set that is no IterableDataset, which refuses `shuffle`."""
    if not in_sight([loader]) or loader.open_arguments or "#managed" in loader.attributes:
        return False
    given = loader.arguments
    plain = all(is_constant(given.get(name, NONE), None) for name in ("sampler", "batch_sampler"))
    return plain and is_constant(given.get("shuffle", NONE), True)
