from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import BatchSkipped, Left
from lightlint.facts.ranks.world import Ranks
from lightlint.finding import Tier

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site


class RankDependentBatchSkip(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Batches that a hook leaves out on one rank, or for what is in them."""
        world = self.facts.world.lightning
        if world is Ranks.ONE:
            return
        alone = [path for pair in entry.pairs() for path in _skipping_alone(*pair)]
        for path in alone:
            for site in _places(path):
                message = "only some ranks get here, and they leave the epoch without the others"
                yield Fault(site, message, Tier.WARNING if world is Ranks.MAYBE else None)
        for path in entry.paths:
            for event in path.of(BatchSkipped) if path not in alone else []:
                if event.returned_at is not None and _follows_own_data(path, event):
                    message = (
                        "each rank has a batch of its own, and one that gets here leaves the epoch without the others"
                    )
                    yield Fault(event.returned_at, message, Tier.NOTE if world is Ranks.MAYBE else None)


def _skipping_alone(first: Path, second: Path) -> Iterator[Path]:
    """The path of two ranks that leaves a batch out which the other does not."""
    for path, other in ((first, second), (second, first)):
        if path.of(BatchSkipped) and not other.of(BatchSkipped) and not other.raised:
            yield path


def _places(path: Path) -> Iterator[Site]:
    yield from (event.returned_at for event in path.of(BatchSkipped) if event.returned_at is not None)


def _follows_own_data(path: Path, skipped: BatchSkipped) -> bool:
    """Whether a test that asks for the numbers of the batch let the hook give its answer."""
    left = [each for each in path.of(Left) if each.where.hook == "on_train_batch_start" and each.time < skipped.time]
    return bool(left) and left[-1].where.depends_on_unknown("own data")
