from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, LossComputed
from lightlint.models.numbers.sums import NotLinear, linear_terms
from lightlint.values.core import Value
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site

_PREDICTED = "predicted"
_MEANT = frozenset(["detach", "detach_", "data"])
"""What leaves numbers as they are: what was counted or chosen never had a gradient."""


class TermWithoutGradient(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses between two answers of networks none of which has a gradient, in a sum with others that have one."""
        for path in entry.paths:
            losses = {each.site: each for each in path.of(LossComputed) if each.where.grad and _is_constant(each)}
            for event in path.of(Backward) if losses else ():
                yield from self._terms(path, event, losses)

    def _terms(self, path: Path, event: Backward, losses: dict[Site, LossComputed]) -> Iterator[Fault]:
        loss = event.loss
        if loss is None or not loss.requires_grad or not path.finished:
            return
        for _, term in linear_terms(loss):
            for each in term.factors if isinstance(term, NotLinear) else (term,):
                found = losses.get(each.site) if isinstance(each, Tensor) and each.site is not None else None
                if found is not None and isinstance(each, Tensor) and not each.requires_grad and each.criterion:
                    message = "neither side of this loss has a gradient, though both come from networks: it adds a number to the loss, and nothing is trained by it"
                    yield Fault(found.site, message, None, (event.site,))


def _is_constant(event: LossComputed) -> bool:
    return all(map(_is_answer_without_gradient, (event.input, event.target)))


def _is_answer_without_gradient(value: Value | None) -> bool:
    """Whether something is what a network said, and surely is without a gradient."""
    if not isinstance(value, Tensor) or _PREDICTED not in value.traits:
        return False
    unsure = value.escaped or value.mixed or value.guessed or value.filled
    return not (value.requires_grad or unsure or value.buffer) and all(each.how in _MEANT for each in value.cuts)
