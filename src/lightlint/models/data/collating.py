"""What shape the tensors of a batch have that torch's own collate function puts together of samples."""

from __future__ import annotations

import ast

from lightlint.engine.machine import Machine
from lightlint.models import tensors
from lightlint.models.data import workers
from lightlint.models.sequences import cuts
from lightlint.models.tensors import forms
from lightlint.values import arrays
from lightlint.values.core import SINGLE, Constant, Mapping, Sequence, Unknown, Value, is_constant
from lightlint.values.training import Loader, Tensor


def shape(machine: Machine, loader: Loader, batch: Tensor, node: ast.AST) -> None:
    """Note what is known of a batch's parts: one dimension more than a sample has, in front of the others."""
    sample = loader.attributes.get(workers.SAMPLE)
    if loader.one_way and isinstance(sample, (Mapping, Sequence)) and _is_collated(loader):
        held = sample.items if isinstance(sample, Mapping) else dict(enumerate(sample.items))
        for key, each in held.items():
            if each.cut_from is not None:
                cuts.keep(tensors.part(machine, batch, key, node), each)
    if not loader.one_way or not gives_rows(loader) or sample is None:
        return
    if isinstance(sample, Sequence):
        if sample.kind in ("tuple", "list") and not sample.more:
            for place, each in enumerate(sample.items):
                _put_together(tensors.part(machine, batch, place, node), each)
    elif isinstance(sample, Mapping):
        for key, each in sample.items.items():
            _put_together(tensors.part(machine, batch, key, node), each)
    else:
        _put_together(batch, sample)


def _is_collated(loader: Loader) -> bool:
    """Whether a function of the program makes its batches."""
    collate = loader.arguments.get("collate_fn")
    return collate is not None and not is_constant(collate, None)


def gives_rows(loader: Loader) -> bool:
    """Whether its batches are several samples, one behind the other."""
    collate = loader.arguments.get("collate_fn")
    several = not is_constant(loader.arguments.get("batch_size", Constant(1)), 1, None)
    return (several or "batch_sampler" in loader.arguments) and (collate is None or is_constant(collate, None))


def _put_together(made: Tensor, sample: Value) -> None:
    cuts.keep(made, sample)
    rank, sure = dimensions(sample)
    made.rows_first = sure or rank > 0
    made.least_rank, made.rank = rank + 1, rank + 1 if sure else None
    if sure and rank == 0:
        made.form = forms.ROW
    elif isinstance(sample, Tensor) and sample.sizes == (1,):
        made.form = forms.COLUMN
    elif rank == 1 and sure and isinstance(sample, Unknown) and (one := _listed(sample)) is not None:
        made.form = forms.COLUMN if len(one.items) == 1 and not (one.more or one.grows) else None


def note_made(made: Tensor, data: Value) -> None:
    """Note how many dimensions a tensor has that is made of data, and that it holds one number in a list."""
    rank, sure = dimensions(data)
    made.least_rank, made.rank = rank, rank if sure and rank else None
    listed = _listed(data)
    if made.rank == 1 and listed is not None and not listed.more and len(listed.items) == 1 and not listed.grows:
        made.sizes = (1,)
    elif made.rank == 1 and not data.traits & SINGLE:
        made.form = forms.ROW


def _listed(value: Value) -> Sequence | None:
    """The list that a value is, or of which an array is made."""
    if isinstance(value, Unknown) and value.hint in ("array", "asarray"):
        value = next(iter(value.lent), value)
    return value if isinstance(value, Sequence) and value.kind in ("list", "tuple") else None


def dimensions(value: Value) -> tuple[int, bool]:
    """How many dimensions a tensor has, or one that is made of a value, and whether it surely has no more."""
    if isinstance(value, Tensor):
        return (0, True) if value.scalar else (value.least_rank, False) if value.rank is None else (value.rank, True)
    listed = _listed(value)
    if listed is not None:
        inner, sure = dimensions(listed.items[0]) if listed.items else (0, False)
        return inner + 1, sure
    return arrays.dimensions(value)
