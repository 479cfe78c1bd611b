from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, LossComputed, RowsNormalised
from lightlint.explore.questions.queries import in_sight
from lightlint.models.data.collating import gives_rows
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site

_MESSAGE = "dimension 0 counts the examples of the batch: this softmax makes each class add up to 1 over them, not the classes of one example"


class SoftmaxOverBatch(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Softmaxes over the examples of a batch, through which a gradient goes."""
        for path in entry.paths:
            trained = {each for event in path.of(Backward) for each in event.parameters}
            for event in path.of(RowsNormalised):
                if event.result.requires_grad and event.result.parameters & trained and in_sight([event.result]):
                    yield Fault.at(event, _MESSAGE)
            for loss in path.of(LossComputed):
                site = _normed_for_classes(loss)
                if site is not None:
                    yield Fault(site, _MESSAGE, None, (loss.site,))


def _normed_for_classes(event: LossComputed) -> Site | None:
    """Where a softmax over its first dimension gave what a loss takes for log-probabilities of the classes of several examples."""
    given, target = event.input, event.target
    if event.function not in ("nll_loss", "NLLLoss") or not isinstance(given, Tensor) or not given.normed_first:
        return None
    loader = target.batch_of if isinstance(target, Tensor) else None
    several = loader is not None and gives_rows(loader) and not loader.escaped
    return given.activation[1] if several and given.activation is not None and in_sight([given]) else None
