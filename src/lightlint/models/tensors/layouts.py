"""How a tensor's dimensions lie in memory, as far as `view` asks for it."""

from __future__ import annotations

import ast
from itertools import pairwise

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import DimensionsMixed, StatesMixed, ViewRefused
from lightlint.engine.language.operators import factors_of
from lightlint.engine.machine import Machine
from lightlint.models.numbers import halves
from lightlint.models.sequences import attention, masks, states
from lightlint.models.tensors import axes, forms
from lightlint.values.core import Constant, Sequence, Value, number_of
from lightlint.values.training import Rearranged, Tensor, tensors_in

DENSE = frozenset(["matmul", "bmm", "cat", "stack", "randn", "zeros", "ones", "rand", "contiguous"])
"""What gives tensors that lie in memory as they are indexed."""
_JOINING = frozenset(["cat", "concat", "concatenate"])
_LENGTHENING = _JOINING | {"pad"}
_BY_ELEMENT = (
    *("relu", "relu_", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "tanh"),
    *("layer_norm", "rms_norm", "normalize", "clamp", "exp", "log", "abs"),
)
_SAME_RANK = frozenset(["softmax", "contiguous", "float", "half", "masked_fill", "dropout", "to", *_BY_ELEMENT])


def note(machine: Machine, made: Value, name: str, given: Arguments, node: ast.AST) -> None:
    """Note how what a function or method gives lies in memory, its tensor the first argument."""
    source = given.positional[0] if given.positional else None
    if isinstance(made, Tensor) and name in _LENGTHENING:
        _lengthen(made, source)
    if name in _JOINING and isinstance(made, Tensor) and isinstance(source, Sequence):
        axes.joined(made, source, given.get(1, "dim") or Constant(0))
    masks.note(machine, made, name, given, node)
    halves.note(machine, made, name, given, node)
    if name == "einsum":
        attention.note_einsum(machine, made, given, node)
    if not isinstance(made, Tensor) or not isinstance(source, Tensor):
        return
    written = given.positional[1:]
    sizes = written[0].items if len(written) == 1 and isinstance(written[0], Sequence) else written
    plain = given.exact and not given.keywords
    made.dense |= name in DENSE
    if name in _SAME_RANK:
        axes.same(made, source)
    if name in _SAME_RANK or name in forms.SAME_SHAPE:
        axes.sized(made, source)
    if name in ("matmul", "bmm"):
        product(machine, made, source, given.get(1, "other" if name == "matmul" else "mat2") or Constant(None), node)
        if name == "bmm":
            made.rank = 3
    if name in ("view", "reshape", "view_as", "reshape_as") and source.rearranged is not None:
        source.rearranged.shifted |= source.beheaded
    if name in ("view", "reshape") and plain and len(sizes) > 1:
        _view(machine, made, source, len(sizes), name, node)
        if source.states_of is not None and states.are_mixed(source.states_of, sizes):
            machine.emit(StatesMixed(machine.where(node), source.states_of, name))
        order = _new_order(source, sizes)
        if order and not (source.thin and axes.in_order([each for each in order if each != max(order)])):
            made.rearranged = Rearranged(order)
            machine.emit(DimensionsMixed(machine.where(node), source, name, made.rearranged))
    elif name in ("permute", "transpose") and plain:
        _reorder(made, source, [number_of(each) for each in sizes], name)
    elif name == "unsqueeze":
        axes.widened(made, source, number_of(given.get(1, "dim")))
    elif name == "flatten":
        start, end = given.get(1, "start_dim") or Constant(0), given.get(2, "end_dim") or Constant(-1)
        axes.flattened(made, source, number_of(start), number_of(end))


def _lengthen(made: Tensor, source: Value | None) -> None:
    """Note that a view with the dimensions in another order got a row more: the gradient of a relative shift goes back so."""
    before = next((each.rearranged for each in tensors_in(source) if each.rearranged is not None), None)
    if before is not None:
        made.rearranged, made.beheaded = before, True


def product(machine: Machine, made: Value, left: Value, right: Value, node: ast.AST) -> None:
    """Note what a product of matrices gives."""
    ranks = [each.rank for each in (left, right) if isinstance(each, Tensor) and each.rank]
    attention.note_product(machine, made, left, right, node)
    if isinstance(made, Tensor):
        made.dense, made.rank = True, max(ranks, default=None)


def _view(machine: Machine, made: Tensor, source: Tensor, rank: int, name: str, node: ast.AST) -> None:
    made.dense, made.rank = source.dense, rank
    order = source.order
    apart = bool(order) and not any(after == before + 1 for before, after in pairwise(order))
    if name == "view" and apart and rank < len(order):
        machine.emit(ViewRefused(machine.where(node), source.reordered_by))


def _new_order(source: Tensor, sizes: list[Value]) -> list[int]:
    """The order in which sizes are those of a tensor's own dimensions, or products of them; empty where they stand as they did,
    or may."""
    written = [number_of(each) for each in sizes]
    if source.sizes and len(written) == len(source.sizes) and 1 not in source.sizes:
        wanted = [int(each) for each in written if each is not None and each > 0]
        left = [each for each in source.sizes if each not in wanted]
        whole = (
            [int(each) if each and each > 0 else left[0] for each in written if each or left] if len(left) < 2 else []
        )
        moved = sorted(whole) == sorted(source.sizes) and tuple(whole) != source.sizes
        return [source.sizes.index(each) for each in whole] if moved else []
    order = [place for each in sizes for place in sorted(_places(source, each))]
    return order if len(set(order)) == len(order) > 1 and not axes.in_order(order) else []


def _places(source: Tensor, size: Value) -> list[int]:
    """Whose sizes of a tensor's dimensions a number is a product of; a place from behind is one only where all are known."""
    factors = [key for key, power in factors_of(size) or () if power == 1 and isinstance(key, tuple)]
    found = [key[2] for key in factors if key[:2] == ("size", (source.sized_as or source).made)]
    places = [each for each in found if isinstance(each, int)]
    if any(each < 0 for each in places) and source.rank is None:
        return []
    if source.rank is not None and any(not -source.rank <= each < source.rank for each in places):
        return []  # on this path it is not what the sizes were asked of
    return [each % source.rank if source.rank else each for each in places]


def _reorder(made: Tensor, source: Tensor, places: list[float | None], name: str) -> None:
    """The order of the dimensions of a tensor that lay as it was indexed."""
    numbers = [int(each) for each in places if each is not None]
    if len(numbers) != len(places):
        return
    rank = len(numbers) if name == "permute" else source.rank
    made.rank = rank
    if rank is None or any(not -rank <= each < rank for each in numbers):
        return
    order = list(range(rank))
    if name == "permute":
        order = [each % rank for each in numbers]
    elif len(numbers) == 2:
        one, other = (each % rank for each in numbers)
        order[one], order[other] = order[other], order[one]
    axes.reordered(made, source, order)
    if source.dense:
        made.order, made.reordered_by = tuple(order), name
