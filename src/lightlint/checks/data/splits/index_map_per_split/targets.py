"""Whether a dict of numbers gives a data set the targets that losses compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightlint.engine.events import LossComputed
from lightlint.models.data.workers import SAMPLE
from lightlint.values.core import Sequence
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Path
    from lightlint.values.core import Mapping, Value
    from lightlint.values.training import Instance

_MOST_MOVES = 5


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
    for _ in range(_MOST_MOVES):
        if not isinstance(target, Tensor):
            return None
        loader = target.batch_of
        if loader is not None and target.part is not None and loader.data is data:
            made = loader.attributes.get(SAMPLE)
            parts = made.items if isinstance(made, Sequence) else []
            number = target.part
            return parts[number] if isinstance(number, int) and -len(parts) <= number < len(parts) else None
        target = target.moved_from or target.shaped_from
    return None
