"""What the samples of a loader are made of, and which part of them a tensor of a batch is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightlint.frameworks.huggingface.rows import STREAMED
from lightlint.models.data.workers import SAMPLE
from lightlint.models.names.huggingface import ROWS
from lightlint.values.core import Class, Mapping, Sequence, Unknown, Value
from lightlint.values.training import Instance, Loader, Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable

_STREAM = "torch.utils.data.IterableDataset"
_MOST_MOVES, _DEPTH, _DEEPEST = 5, 4, 8


def whole_of(data: Value | None) -> Instance | None:
    """The data set of which another is a part, or it itself."""
    for _ in range(_DEPTH):
        inner = data.arguments.get("dataset") if isinstance(data, Instance) else None
        if not isinstance(inner, Instance) or inner.kind != "data set":
            break
        data = inner
    return data if isinstance(data, Instance) else None


def is_stream(data: Value | None) -> bool:
    """Whether a data set is gone over from the first to the last alone: a table of Datasets that is streamed, or torch's
    IterableDataset as a class of the program makes one."""
    if not isinstance(data, Instance):
        return False
    if data.kind == ROWS:
        return STREAMED in data.attributes
    return isinstance(data.cls, Class) and data.cls.libraries()[:1] == [_STREAM]


def parts_of(loader: Loader) -> dict[Hashable, Value]:
    """What a sample of a loader is made of, by place or name; nothing of one that is a single thing."""
    made = loader.attributes.get(SAMPLE)
    if isinstance(made, Sequence):
        return dict(enumerate(made.items))
    return {**made.items} if isinstance(made, Mapping) else {}


def part_of_batch(value: Value | None) -> tuple[Loader, Hashable] | None:
    """The loader that gave a tensor, wherever that was moved and however it was shaped since, and which part of its batches it is."""
    for _ in range(_MOST_MOVES):
        if not isinstance(value, Tensor):
            return None
        if value.part is not None and value.role == "batch" and value.batch_of is not None:
            return value.batch_of, value.part
        value = value.moved_from or value.shaped_from
    return None


def parts_in(value: Value | None, depth: int = 0) -> set[tuple[Loader, Hashable]]:
    """The parts of batches that something was computed from, also by code out of sight."""
    if value is None or depth > _DEEPEST:
        return set()
    found: set[tuple[Loader, Hashable]] = set()
    held: list[Value | None] = [*(value.terms[1] if value.terms is not None else ())]
    if isinstance(value, Tensor):
        own = part_of_batch(value)
        found = {*value.seen, *([own] if own is not None else [])}
    elif isinstance(value, Sequence):
        held += value.items
    elif isinstance(value, Unknown):
        held += [*value.lent, value.given_by, getattr(value, "holder", None)]
    return found.union(*(parts_in(each, depth + 1) for each in held))
