"""What an encoder of Transformers gives for each place of texts that were filled up, until something leaves the filling out."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events.huggingface import PlacesAveraged
from lightlint.engine.machine import Machine
from lightlint.values.core import Sequence, Value, number_of
from lightlint.values.training import Tensor

OUTPUT, LAYERS, STATES = "output", "layers", "states"
"""What of a model's output a tensor is: all of it, the states of each layer, or those of one."""
SAME = frozenset(["to", "cuda", "cpu", "float", "half", "double", "bfloat16", "detach", "clone", "contiguous", "type"])
"""Methods that leave all places as they are."""


def note_output(result: Value, ids: Value | None) -> None:
    """A model has read token ids: of several texts, filled up to one length."""
    encoding = ids.encoding if ids is not None else None
    if isinstance(result, Tensor) and encoding is not None and encoding.pads and encoding.several:
        result.places = (encoding, OUTPUT)


def part(made: Value, whole: Tensor, index: object) -> None:
    """Keep of a part of an output whether it is the states of all places."""
    if whole.places is None or not isinstance(made, Tensor):
        return
    encoding, kind = whole.places
    if kind == OUTPUT:
        found = {"last_hidden_state": STATES, 0: STATES, "hidden_states": LAYERS}.get(index)
        made.places = (encoding, found) if found is not None else None
    else:
        made.places = (encoding, STATES) if kind == LAYERS and isinstance(index, int) else None


def combined(made: Tensor, symbol: str, left: Value, right: Value) -> None:
    """The sum of the states of two layers, or of one with a number's weight, has all places, too."""
    sides = (left, right)
    held = [each.places for each in sides if isinstance(each, Tensor) and each.places is not None]
    both = symbol in ("+", "-") and len(held) == len(sides)
    weighed = symbol in ("*", "/") and bool(held) and any(number_of(each) is not None for each in sides)
    if (both or weighed) and held[0][1] == STATES:
        made.places = held[0]


def averaged(machine: Machine, name: str, source: Value | None, given: Arguments, node: ast.AST) -> None:
    """Write down that a mean is taken over all places."""
    if name != "mean" or not isinstance(source, Tensor) or source.places is None or source.places[1] != STATES:
        return
    dimension = given.get(1, "dim") or given.keywords.get("axis")
    one = dimension.items[0] if isinstance(dimension, Sequence) and len(dimension.items) == 1 else dimension
    if number_of(one) in (1, -2):
        machine.emit(PlacesAveraged(machine.where(node), source.places[0]))
