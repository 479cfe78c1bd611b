"""Which dimension of a tensor counts the examples of a batch, as far as layers for sequences ask for it."""

from __future__ import annotations

import ast
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import BatchMixed
from lightlint.engine.machine import Machine
from lightlint.models.names.tables import BY_ROW
from lightlint.values.core import Sequence, Value, is_constant, number_of
from lightlint.values.training import Module, Tensor

_BATCH_FIRST = frozenset(
    ["LSTM", "GRU", "RNN", "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer"]
)
"""Layers for sequences that take the batch as their second dimension unless they are told otherwise."""
_OF_LAYERS = {"TransformerEncoder": "encoder_layer", "TransformerDecoder": "decoder_layer"}
_BY_ELEMENT = BY_ROW.union(["RMSNorm", "GroupNorm", *_BATCH_FIRST, *_OF_LAYERS])
_BY_CHANNEL = re.compile(
    r"(?:Lazy)?(?:Conv|ConvTranspose|BatchNorm|InstanceNorm|MaxPool|AvgPool|LPPool|AdaptiveMaxPool|AdaptiveAvgPool)\dd"
)
"""Layers over channels: the examples stay first, the dimensions as many."""
_REDUCING = frozenset(["mean", "sum", "amax", "max", "min", "amin", "median", "logsumexp"])


def batch_second(module: Module) -> Module | None:
    """The layer that makes a module take the batch as its second dimension, None where it does not, or may not."""
    if module.name in _OF_LAYERS:
        inner = module.arguments.get(_OF_LAYERS[module.name])
        return batch_second(inner) if isinstance(inner, Module) else None
    if module.name not in _BATCH_FIRST or module.open_arguments:
        return None
    given = module.arguments.get("batch_first")
    return module if given is None or is_constant(given, False) else None


def same(made: Tensor, source: Value | None) -> None:
    """The dimensions of a tensor mean what those of another do."""
    if isinstance(source, Tensor):
        made.rows_first, made.batch_second = source.rows_first, source.batch_second
        made.thin = source.thin
        made.rank, made.least_rank = source.rank, source.least_rank
        made.states_of, made.scored, made.weights = source.states_of, source.scored, source.weights


def sized(made: Tensor, source: Value | None) -> None:
    """Each number of a tensor was made of one of another's, at the same place."""
    if isinstance(source, Tensor):
        made.sized_as = source.sized_as or source


def in_order(places: list[int]) -> bool:
    """Whether dimensions stand as they did."""
    return places == sorted(places)


def reordered(made: Tensor, source: Tensor, order: list[int]) -> None:
    """Note which dimension counts the examples once dimensions were put into another order."""
    made.rows_first = source.rows_first and order[:1] == [0]
    made.batch_second = source.batch_second if order[1:2] == [1] else None


def flattened(made: Tensor, source: Tensor, start: float | None, end: float | None) -> None:
    """Note what is left of the dimensions where those behind the first were made one."""
    if start is not None and start > 0 and end == -1:
        made.rows_first, made.rank = source.rows_first, int(start) + 1


def widened(made: Tensor, source: Tensor, place: float | None) -> None:
    """Note what the dimensions mean once there is one of a single element more."""
    if source.scalar:
        made.rank, made.least_rank, made.sizes = 1, 1, (1,)
    elif isinstance(place, int):
        made.least_rank = source.least_rank + 1
        made.rank = source.rank + 1 if source.rank is not None else None
        behind = place if place >= 0 else place + (source.rank or source.least_rank) + 1
        made.rows_first = source.rows_first and behind > 0


def parted(name: str, source: Value | None, *parts: Tensor) -> None:
    """Note how many dimensions the parts of a tensor have: one less where they lay beside each other in one of their own."""
    rank = source.rank if isinstance(source, Tensor) else None
    for each in parts:
        each.rank = (rank - (name == "unbind") or None) if rank is not None else None


def joined(made: Tensor, parts: Sequence, along: Value) -> None:
    """Note what the dimensions of tensors mean that were put one behind the other in one that is not the batch's."""
    source = leading(*parts.items)
    place = number_of(along)
    if source is None or source.rank is None or place is None or not -source.rank <= place < source.rank:
        return
    place = int(place) % source.rank
    made.rank = source.rank
    made.rows_first = source.rows_first and place != 0
    made.batch_second = source.batch_second if place != 1 else None


def leading(*values: Value) -> Tensor | None:
    """Of what meets in an operation by element the one of whose dimensions most is known."""
    held = [each for each in values if isinstance(each, Tensor) and not each.scalar]
    known = [each for each in held if each.rows_first or each.batch_second is not None]
    return next(iter(known or held), None)


def of_layer(machine: Machine, module: Module, made: Tensor, given: Value | None, node: ast.AST) -> None:
    """What a layer of torch makes of the dimensions of what it is given."""
    if not isinstance(given, Tensor):
        return
    if module.name in _BY_ELEMENT:
        same(made, given)
        made.scored, made.weights = False, None
        if module.name in BY_ROW and not module.name.endswith("Linear"):
            sized(made, given)
    elif _BY_CHANNEL.fullmatch(module.name):
        made.rows_first, made.rank = given.rows_first, given.rank
    elif module.name == "Embedding" and (given.rank is not None or given.least_rank):
        made.rows_first, made.least_rank = given.rows_first, given.least_rank + 1
        made.rank = given.rank + 1 if given.rank is not None else None
    if module.name == "Linear":
        made.thin = is_constant(module.arguments.get("out_features"), 1)
    if given.rearranged is not None:
        order, place = given.rearranged.order, _single(module)
        given.rearranged.thin |= place is not None and in_order([each for each in order if each != order[place]])
    second = batch_second(module)
    if second is not None:
        if given.rows_first and (given.rank or given.least_rank) == len("nle"):
            machine.emit(BatchMixed(machine.where(node), second, "is given"))
        made.batch_second = second


def _single(module: Module) -> int | None:
    """Which dimension of what a layer is given has one element, by its own words; None where none surely has."""
    if is_constant(module.arguments.get("in_channels"), 1):
        return 1
    ones = (module.arguments.get(name) for name in ("in_features", "input_size"))
    return -1 if any(is_constant(each, 1) for each in ones) else None


def reduced(machine: Machine, name: str, source: Value | None, given: Arguments, node: ast.AST) -> None:
    """Write down that the batch of a tensor is reduced as if it was the sequence."""
    if name not in _REDUCING or not isinstance(source, Tensor) or source.batch_second is None:
        return
    dimension = given.get(1, "dim") or given.keywords.get("axis")
    if isinstance(dimension, Sequence) and len(dimension.items) == 1:
        dimension = dimension.items[0]
    if is_constant(dimension, 1, -2):
        machine.emit(BatchMixed(machine.where(node), source.batch_second, "is reduced over"))
