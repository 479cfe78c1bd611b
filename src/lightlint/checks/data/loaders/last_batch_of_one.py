from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Normalised
from lightlint.explore.questions.certain import anyhow
from lightlint.values.core import Constant, Sequence, is_constant
from lightlint.values.training import Instance, Loader, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LastBatchOfOne(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Loaders whose last batch of one row comes to batch normalisation in training mode, whatever tests say."""
        faulty = (each for each in entry.of(Normalised) if _leaves_one(each.loader))
        for event in anyhow(faulty):
            rows, size = _numbers(event.loader)
            if event.loader.site is not None:
                message = (
                    f"{rows} rows in batches of {size} leave one for the last, on which `BatchNorm1d` raises ValueError"
                )
                yield Fault(event.loader.site, message, None, (event.site,))


def _leaves_one(loader: Loader) -> bool:
    rows, size = _numbers(loader)
    return size > 1 and rows % size == 1


def _numbers(loader: Loader) -> tuple[int, int]:
    """The rows of a loader's table and of its batches; no rows where it is unknown how many batches it gives."""
    given = loader.arguments
    held = loader.data.arguments.get("tensors") if isinstance(loader.data, Instance) else None
    table = held.items[0] if isinstance(held, Sequence) and held.items and not held.more else None
    size = given.get("batch_size")
    apart = any(name in given for name in ("batch_sampler", "sampler")) or loader.open_arguments
    whole = is_constant(given.get("drop_last", Constant(False)), False) and not apart
    named = isinstance(loader.data, Instance) and loader.data.name == "TensorDataset"
    if not whole or not named or not isinstance(table, Tensor) or not table.sizes or not isinstance(size, Constant):
        return 0, 0
    return table.sizes[0], size.value if isinstance(size.value, int) else 0
