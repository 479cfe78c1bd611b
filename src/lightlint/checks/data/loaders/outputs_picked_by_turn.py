from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import PickedByTurn
from lightlint.values.core import is_constant
from lightlint.values.training import Instance, Loader

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_SEEDS = ("torch.manual_seed", "lightning.seed_everything", "transformers.set_seed", "accelerate.utils.set_seed")
"""What makes passes draw the same order, where it is called ahead of each."""


class OutputsPickedByTurn(Check):
    users_with = ("DataLoader",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Answers that are kept for each batch, and looked up by its number when the loader gives other batches."""
        for event in entry.of(PickedByTurn):
            filled, drawn = event.filled, event.drawn
            if not isinstance(filled, Loader) or not isinstance(drawn, Loader):
                continue
            same = filled is drawn or (filled.data is not None and filled.data is drawn.data)
            calls = (each for name in _SEEDS for each in entry.calls.get(name, ()))
            seeds = {each.where.places for each in calls if each.time < event.time}
            if same and (_shuffles(filled) or _shuffles(drawn)) and len(seeds) < 2:
                also = (event.site,) if drawn.site is None else (event.site, drawn.site)
                message = "this was kept for the batches of another pass, and the loader shuffles: a batch of this number holds other examples now"
                yield Fault(event.where.in_loop("batch"), message, None, also, event.where.places[1:])


def _shuffles(loader: Loader) -> bool:
    """Whether a loader surely gives its samples in another order each time."""
    if loader.open_arguments or loader.assumed or "generator" in loader.arguments:
        return False
    sampler = loader.sampler
    drawn = isinstance(sampler, Instance) and sampler.name == "RandomSampler"
    return drawn or (sampler is None and is_constant(loader.arguments.get("shuffle"), True))
