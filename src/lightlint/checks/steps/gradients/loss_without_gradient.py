from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Stepped
from lightlint.explore.questions.queries import in_sight

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.training import Tensor


class LossWithoutGradient(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes that reach no parameter, over what hangs on indices and comparisons of what an optimizer trains."""
        reaching = {each.site for each in entry.of(Backward) if any(map(_may_train, each.parameters))}
        for path in entry.paths:
            trained = {each for step in path.of(Stepped) if not step.optimizer.escaped for each in step.parameters}
            for event in path.of(Backward):
                if event.loss is None or event.site in reaching or not in_sight([event.loss]):
                    continue
                cut = next(
                    (each for each in event.loss.cuts if each.how in _DISCRETE and each.parameters & trained), None
                )
                if cut is not None:
                    what = "a comparison" if cut.how == "comparison" else f"`{cut.how}`"
                    message = f"the loss hangs on {what} alone, through which no gradient passes: no parameter gets one"
                    yield Fault.at(event, message, cut.site)


def _may_train(reached: Tensor) -> bool:
    """Whether a gradient is of use to a tensor: a parameter, or a leaf made of nothing that lost its graph. Indices that are told
    to take one are no such leaf."""
    return reached.parameter or not reached.cuts


_DISCRETE = frozenset(
    [
        "comparison",
        "argmax",
        "argmin",
        "round",
        "floor",
        "ceil",
        "sign",
        "eq",
        "ne",
        "gt",
        "lt",
        "ge",
        "le",
        "argsort",
        "long",
        "int",
        "bool",
        "nonzero",
        "multinomial",
    ]
)
