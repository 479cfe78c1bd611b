"""Targets of temporal differences: a reward, and a share of what a network says of the next state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.engine.events import DifferenceSquared, LossComputed
from lightlint.values.core import Constant, Unknown, Value
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_PREDICTED = "predicted"
_DEPTH = 4
_OPTIONS = ("parameter", "argument", "field", "hyperparameter", "of")


def bootstrapped(entry: Entry) -> Iterator[tuple[LossComputed | DifferenceSquared, Tensor, list[Value]]]:
    """Losses whose target is something that no network had a part in, plus a product with a network's answer: its factors."""
    events: list[LossComputed | DifferenceSquared] = [*entry.of(LossComputed), *entry.of(DifferenceSquared)]
    for event in events:
        for given, target in ((given, part) for given, whole in _sides(event) for part in _parts(whole)):
            factors = _bootstrap(given, target)
            if factors is not None and isinstance(target, Tensor):
                yield event, target, factors
                break


def _parts(target: Value | None) -> tuple[Value | None, ...]:
    """A target, and what it is put together of: the returns of the steps of a rollout."""
    return (target, *target.stacked) if isinstance(target, Tensor) else (target,)


def _sides(event: LossComputed | DifferenceSquared) -> list[tuple[Value | None, Value | None]]:
    """What comes near to what; of a difference, either may be the target."""
    if isinstance(event, LossComputed):
        return [(event.input, event.target)]
    return [(event.right, event.left), (event.left, event.right)]


def _bootstrap(given: Value | None, target: Value | None) -> list[Value] | None:
    """The factors of the product that a target goes on with, None for another target."""
    if not isinstance(target, Tensor) or not isinstance(given, Tensor) or target.terms is None or target.escaped:
        return None
    symbol, terms = target.terms
    for one, other in (terms, terms[::-1]) if symbol == "+" else ():
        factors = [*_factors(one)]
        answers = [each for each in factors if is_answer(each)]
        plain = _PREDICTED not in other.traits and _PREDICTED in given.traits
        if len(answers) == 1 and len(factors) > 1 and plain and isinstance(other, (Tensor, Unknown)):
            return factors
    return None


def _factors(value: Value, depth: int = 0) -> Iterator[Value]:
    """What a product is made of."""
    if isinstance(value, Tensor) and value.terms is not None and value.terms[0] == "*" and depth < _DEPTH:
        for each in value.terms[1]:
            yield from _factors(each, depth + 1)
    else:
        yield value


def is_answer(value: Value, depth: int = 0) -> bool:
    """Whether a value is what a network said, or the sum of that and something more: an entropy."""
    if not isinstance(value, Tensor) or value.answer:
        return isinstance(value, Tensor)
    symbol, terms = value.terms or ("", ())
    return symbol in ("+", "-") and depth < _DEPTH and any(is_answer(each, depth + 1) for each in terms)


def is_number(value: Value) -> bool:
    """Whether a value is a number of the program, the same for all examples, or an option for one."""
    if isinstance(value, Unknown):
        kind = value.key[0] if isinstance(value.key, tuple) else None
        return kind in _OPTIONS and "gamma" in value.hint.lower()
    return isinstance(value, Constant)
