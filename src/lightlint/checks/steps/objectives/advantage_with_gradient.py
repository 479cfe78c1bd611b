from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward
from lightlint.explore.questions.queries import gradient_used
from lightlint.models.numbers.sums import summands
from lightlint.models.tensors import PREDICTED
from lightlint.values.core import CHANCES, Constant, Value
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_DEPTH = 12


class AdvantageWithGradient(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Log probabilities times the difference of a reward and what a critic says, with the critic's gradient."""
        for path in entry.paths:
            for event in path.of(Backward):
                for product, values in _weighed(event.loss):
                    critic = {each for value in values for each in value.parameters if each.requires_grad}
                    if gradient_used(path, critic, event.time):
                        message = "the loss of the policy has the critic's gradient in it, too: it moves what the critic says by how likely the actions were, whatever they brought"
                        yield Fault(product.site or event.site, message, None, (event.site,))


def _weighed(value: Value | None, depth: int = 0) -> Iterator[tuple[Tensor, list[Tensor]]]:
    """The products in a loss of log probabilities and an advantage, with the critic's answers in that."""
    if not isinstance(value, Tensor) or not value.requires_grad or depth > _DEPTH:
        return
    symbol, parts = value.terms or ("", value.stacked)
    for one, other in (parts, parts[::-1]) if symbol == "*" else ():
        chances = isinstance(one, Tensor) and one.requires_grad and one.traits >= CHANCES
        if chances and not other.traits >= CHANCES and (answers := _unsettled(other)):
            yield value, answers
    for each in parts:
        yield from _weighed(each, depth + 1)


def _unsettled(advantage: Value, depth: int = 0) -> list[Tensor]:
    """The answers of a network with its gradient in the difference of these and of something given; none of another value."""
    symbol, parts = advantage.terms or ("", ())
    if not isinstance(advantage, Tensor) or not advantage.requires_grad or depth > _DEPTH:
        return []
    if symbol == "*":
        return [found for each in parts for found in _unsettled(each, depth + 1)]
    terms = [*summands(advantage)] if symbol == "-" else []
    given = any(not _has_gradient(each) and not isinstance(each, Constant) for each in terms)
    return [found for each in terms for found in _answers(each)] if given else []


def _has_gradient(value: Value) -> bool:
    return isinstance(value, Tensor) and (value.requires_grad or value.traits >= PREDICTED)


def _answers(value: Value) -> list[Tensor]:
    """What a network said, by itself or one behind the other, if it has a gradient and is in sight."""
    held = (value, *value.stacked) if isinstance(value, Tensor) else ()
    tensors = [each for each in held if isinstance(each, Tensor) and each.answer and not each.escaped]
    return [each for each in tensors if each.requires_grad]
