"""Targets of temporal differences: a reward, and a share of what a network says of the next state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.engine.events import LossComputed
from lightlint.values.core import Constant, Unknown, Value
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_PREDICTED = "predicted"
_DEPTH = 4
_OPTIONS = ("parameter", "argument", "field", "hyperparameter", "of")


def bootstrapped(entry: Entry) -> Iterator[tuple[LossComputed, list[Value]]]:
    """Losses whose target is something that no network had a part in, plus a product with a network's answer: its factors."""
    for event in entry.of(LossComputed):
        target, given = event.target, event.input
        if not isinstance(target, Tensor) or not isinstance(given, Tensor) or target.terms is None or target.escaped:
            continue
        symbol, terms = target.terms
        for one, other in (terms, terms[::-1]) if symbol == "+" else ():
            factors = [*_factors(one)]
            answers = [each for each in factors if is_answer(each)]
            plain = _PREDICTED not in other.traits and _PREDICTED in given.traits
            if len(answers) == 1 and len(factors) > 1 and plain and isinstance(other, (Tensor, Unknown)):
                yield event, factors
                break


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
