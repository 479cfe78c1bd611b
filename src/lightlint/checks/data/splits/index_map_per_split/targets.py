"""Whether a dict of numbers gives a data set the targets that losses compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightlint.engine.events import LossComputed
from lightlint.explore.samples import part_of_batch, parts_of
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Path
    from lightlint.values.core import Mapping, Value
    from lightlint.values.training import Instance


def numbers_targets(path: Path, data: Instance, numbers: Mapping) -> bool:
    """Whether the targets of a loss over batches of a data set are numbers of a dict."""
    own = {id(each) for each in numbers.items.values()}
    for loss in path.of(LossComputed):
        sample = _sample_of(loss.target, data)
        held = (sample, *sample.stacked) if isinstance(sample, Tensor) else (sample,)
        if any(id(each) in own for each in held):
            return True
    return False


def _sample_of(target: Value | None, data: Instance) -> Value | None:
    """What a target is in one sample of a data set, wherever its batch was moved."""
    found = part_of_batch(target)
    return parts_of(found[0]).get(found[1]) if found is not None and found[0].data is data else None
