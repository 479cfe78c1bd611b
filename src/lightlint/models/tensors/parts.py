"""Parts of tensors by index."""

from __future__ import annotations

import ast
from typing import cast

from lightlint.engine.events import (
    BatchMixed,
    DevicesMixed,
    PaddingRead,
    ScalarIndexed,
)
from lightlint.engine.machine import Machine
from lightlint.models.numbers import halves
from lightlint.models.sequences import cuts, pooled
from lightlint.models.tensors import axes, forms
from lightlint.models.tensors.derivation import derive
from lightlint.values.core import (
    NO_TRAITS,
    OF_TOKENS,
    OWN_DATA,
    Constant,
    Sequence,
    Unknown,
    Value,
    is_constant,
    number_of,
    places_of,
    text_of,
)
from lightlint.values.training import Graph, Tensor, tensors_in


def part(machine: Machine, tensor: Tensor, index: object, node: ast.AST) -> Tensor:
    """A part of a tensor; of a batch the same part is the same tensor each time."""
    if tensor.role != "batch":
        made = derive(machine, node, tensor, keep=True)
        made.scalar |= tensor.rank == 1
        made.stored = tensor.stored if tensor.stored in halves.FLOATS else ""  # one number picks otherwise than several
        made.only_from = None
        return _first_of(tensor, index, part_of_guess(machine, tensor, made, node))
    key = index if isinstance(index, (int, str)) else str(index)
    found = tensor.parts.get(key)
    if found is None:
        found = machine.tensor(node)
        found.role, found.device, found.leaf, found.part, found.escaped = (
            "batch",
            tensor.device,
            False,
            key,
            tensor.escaped,
        )
        found.batch_of, found.traits = tensor.batch_of, OWN_DATA if not tensor.escaped else NO_TRAITS
        found.whole = tensor
        tensor.parts[key] = found
    return found


def _first_of(outputs: Tensor, index: object, part: Tensor) -> Tensor:
    """A part of what a model gave: of one that was told labels, the first is the loss."""
    part.traits |= OF_TOKENS if outputs.of_tokens and index == 0 else NO_TRAITS
    return part


def put_part(batch: Tensor, name: str, new: Value) -> None:
    """`batch[name] = new`: a batch with names is a dict, so what was there is gone, and with it what it was computed from."""
    before = batch.parts.pop(name, None)
    if isinstance(new, Tensor):
        batch.parts[name] = new
    if before is not None:
        left = batch.parts.values()
        batch.graph -= before.graph.difference(*(each.graph for each in left))
        batch.parameters -= before.parameters.difference(*(each.parameters for each in left))


def part_of_guess(machine: Machine, whole: Tensor, made: Tensor, node: ast.AST) -> Tensor:
    """A part of what a module out of sight gave: a number for the log, perhaps, unless something goes backward through it."""
    made.guessed = whole.guessed
    if made.guessed and made.graph:
        made.graph |= {Graph(machine.site(node), machine.clock, None, guess=True)}
    return made


def _indices(index: Value) -> list[Tensor]:
    """The tensors that index: the bounds of a slice are taken as numbers, wherever they lie."""
    if isinstance(index, Sequence) and index.kind == "tuple":
        return [each for part in index.items for each in _indices(part)]
    return [] if isinstance(index, Sequence) and index.kind == "slice" else tensors_in(index)


def item(machine: Machine, tensor: Tensor, index: Value, node: ast.AST) -> Value:
    """`tensor[index]`."""
    tensor.uninitialised = False  # a part may be filled
    if tensor.steps is not None and _is_last_step(tensor.steps, index):
        machine.emit(PaddingRead(machine.where(node), tensor))
    if tensor.batch_second is not None and _is_last_step(1, index):
        machine.emit(BatchMixed(machine.where(node), tensor.batch_second, "is reduced over"))
    if tensor.scalar and tensor.role == "loss" and is_constant(index, 0):
        machine.emit(ScalarIndexed(machine.where(node), tensor))
    if tensor.role == "batch" and isinstance(index, Constant):
        return part(machine, tensor, index.value, node)
    indices = _indices(index)
    if tensor.device == "cpu" and not tensor.escaped:
        on_gpu = [each for each in indices if each.device == "cuda" and not each.scalar]
        if on_gpu:
            machine.emit(DevicesMixed(machine.where(node), tensor, on_gpu[0], "index"))
    made = derive(machine, node, tensor, keep=True, saves=bool(indices) or isinstance(index, Unknown))
    one = isinstance(number_of(index), int)
    made.scalar = tensor.rank == 1 and one
    if one:
        made.stored = tensor.stored if tensor.stored in halves.FLOATS else ""
        axes.parted("unbind", tensor, made)
    if isinstance(index, Unknown) and tensor.rank in (1, None):
        made.sure_device = False  # a number, perhaps, which lets any device have what it picks
    made.form, made.layer, made.as_given = forms.of_item(tensor, index), "", False
    made.part_of, made.taken_from = (None, tensor) if indices else (tensor, None)
    made.shaped_from = tensor if _takes_all(index) else None
    cuts.note(made, tensor, index)
    if tensor.encoding is not None and _is_cut_to_length(index):
        made.filled = True  # the padding may be gone
    made.unreduced = None if indices else made.unreduced
    made.rearranged, made.beheaded = tensor.rearranged, tensor.beheaded or _drops_first(index)
    anything = tensor.guessed or tensor.role == "batch"
    if text_of(index) is not None or (anything and isinstance(index, Unknown) and "index" not in index.traits):
        made.escaped = True  # what a module out of sight gives by name may be anything
    pooled.part(made, tensor, number_of(index))
    return _first_of(tensor, number_of(index), part_of_guess(machine, tensor, made, node))


def _slices(index: Value) -> tuple[list[list[Value]], int]:
    """The bounds of the slices in an index, and how many dimensions it speaks of."""
    places = places_of(index)
    return [each.items for each in places if isinstance(each, Sequence) and each.kind == "slice"], len(places)


def _takes_all(index: Value) -> bool:
    """Whether an index only adds dimensions: `[:, None]`."""
    slices, places = _slices(index)
    added = [each for each in places_of(index) if is_constant(each, None, ...)]
    whole = all(is_constant(bound, None) for bounds in slices for bound in bounds)
    return whole and len(slices) + len(added) == places


def _is_cut_to_length(index: Value) -> bool:
    """Whether an index ends where something says that is worked out: how long a text is, perhaps."""
    return any(not isinstance(end, Constant) for _, end, *_ in _slices(index)[0])


def _drops_first(index: Value) -> bool:
    """Whether an index is `1:` in one dimension."""
    return any(is_constant(first, 1) and is_constant(last, None) for first, last, *_ in _slices(index)[0])


def _is_last_step(dimension: int, index: Value) -> bool:
    """Whether an index takes the last of a dimension, and all of the others."""
    places = places_of(index)
    whole = [i for i, each in enumerate(places) if isinstance(each, Sequence) and each.kind == "slice"]
    whole = [i for i in whole if all(is_constant(part, None) for part in cast(Sequence, places[i]).items)]
    last = [i for i, each in enumerate(places) if is_constant(each, -1)]
    return last == [dimension] and len(whole) == len(places) - 1
