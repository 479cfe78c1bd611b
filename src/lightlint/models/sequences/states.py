"""The final states of recurrent layers: (layers and directions, examples, width)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from lightlint.engine.language.operators import factors_of, is_number_key
from lightlint.values.core import Constant, Value, is_constant
from lightlint.values.training import Module

_Powers = Counter[Hashable]


def are_mixed(layer: Module, sizes: Sequence[Value]) -> bool:
    """Whether sizes give a row states of several examples: these lie beside each other, those of one example far apart."""
    directions = 2 if is_constant(layer.argument("bidirectional", _PLACES[layer.name]), True) else 1
    first = _powers(layer.argument("num_layers", 2) or Constant(1))
    width = _powers(layer.argument("hidden_size", 1))
    sizes = [*sizes]
    while sizes and is_constant(sizes[-1], 1):
        sizes.pop()
    if first is None or layer.open_arguments or "proj_size" in layer.arguments or len(sizes) < 2:
        return False
    last = _powers(sizes[-1])
    if width is not None and last is not None and _times(last, width) > 1 and not is_constant(sizes[-1], -1):
        return True
    examples = next((place for place, each in enumerate(sizes) if "batch-size" in each.traits), None)
    if examples is None or any(is_constant(each, -1) for each in sizes[:examples]):
        return False
    before = [_powers(each) for each in sizes[:examples]]
    ahead: _Powers = Counter()
    for each in before:
        if each is None:
            return False
        ahead.update(each)
    return directions * _times(first, ahead) > 1


_PLACES = {"LSTM": 6, "GRU": 6, "RNN": 7}


def _powers(value: Value | None) -> _Powers | None:
    factors = factors_of(value) if value is not None else None
    return Counter(dict(factors)) if factors is not None else None


def _times(whole: _Powers, part: _Powers) -> float:
    """How many times one number is another, where the numbers that the program writes down tell; at least how many times, where
    it is that often some whole number; 0 where nothing tells."""
    left = Counter(whole)
    left.subtract(part)
    number = 1.0
    for key, power in left.items():
        if isinstance(key, tuple) and is_number_key(key):
            number *= key[1] ** power
        elif power < 0:
            return 0
    return number
