"""Attention that a program works out itself: scores, a softmax over them, and what these weights are multiplied with."""

from __future__ import annotations

import ast
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import WeightsUsed
from lightlint.engine.machine import Machine
from lightlint.values.core import Value, number_of, text_of
from lightlint.values.training import Tensor, Weights

_SOFTMAX = frozenset(["softmax", "Softmax"])
_LEFT, _RIGHT = -1, -2
"""Over which dimension of its first and of its second factor a product of matrices is summed."""
_EQUATION = re.compile(r"([a-zA-Z]+),([a-zA-Z]+)->([a-zA-Z]+)")


def note_softmax(machine: Machine, made: Tensor, name: str, dimension: Value | None, node: ast.AST) -> None:
    """Note over which dimension weights were made to add up to 1: counted from behind, where that is known."""
    place = number_of(dimension)
    made.weights = None
    if name not in _SOFTMAX or not isinstance(place, int) or (place >= 0 and made.rank is None):
        return
    if made.rank is not None:
        place = place % made.rank - made.rank
    made.weights = Weights(machine.site(node), place, scored=made.scored)


def note_product(machine: Machine, made: Value, left: Value, right: Value, node: ast.AST) -> None:
    """Note what a product of matrices makes of weights, and that it may be scores itself."""
    for factor, other, summed in ((left, right, _LEFT), (right, left, _RIGHT)):
        if isinstance(factor, Tensor) and factor.weights is not None and _are_rows(other):
            machine.emit(WeightsUsed(machine.where(node), factor.weights, factor.weights.dimension == summed))
    if isinstance(made, Tensor):
        made.scored = _are_vectors(left) and _are_vectors(right)


def note_einsum(machine: Machine, made: Value, given: Arguments, node: ast.AST) -> None:
    """Note the same of a product that `einsum` is told with letters."""
    told = _EQUATION.fullmatch((text_of(given.get(0, "equation")) or "").replace(" ", ""))
    factors = given.positional[1:]
    if told is None or len(factors) != len(_FACTORS) or not isinstance(made, Tensor):
        return
    *letters, kept = told.groups()
    made.rank = len(kept)
    made.scored = all(map(_are_vectors, factors))
    for factor, own, other in zip(factors, letters, reversed(factors), strict=True):
        weights = factor.weights if isinstance(factor, Tensor) else None
        if weights is not None and -len(own) <= weights.dimension and _are_rows(other):
            machine.emit(WeightsUsed(machine.where(node), weights, own[weights.dimension] not in kept))


_FACTORS = ("first", "second")


def _are_vectors(value: Value) -> bool:
    """Whether something was computed for what is looked at, and is no table of the module's own."""
    return isinstance(value, Tensor) and not value.parameter and not value.buffer and value.weights is None


def _are_rows(value: Value) -> bool:
    """Whether something is what weights weigh: no weights themselves, which may be multiplied to follow attention."""
    return isinstance(value, Tensor) and value.weights is None
