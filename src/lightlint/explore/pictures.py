"""Through which transforms of a library the pictures of a batch went, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightlint.engine.events import SampleMade, Transformed
from lightlint.explore.samples import parts_of, whole_of
from lightlint.models.data.workers import SAMPLE
from lightlint.values.core import Library, Sequence, Value, number_of
from lightlint.values.training import Instance, Loader, Module, Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lightlint.explore.rehearsals import Entry

_MOST_MOVES, _DEPTH = 5, 4
_KEEPING = frozenset(
    [
        "Resize",
        "CenterCrop",
        "RandomCrop",
        "RandomResizedCrop",
        "RandomHorizontalFlip",
        "RandomVerticalFlip",
        "Pad",
        "RandomRotation",
    ]
)
"""Transforms that leave the numbers of a picture what they are, or a mean of them."""


def transforms_of(entry: Entry, tensor: Value | None) -> list[Instance] | None:
    """The transforms that made the pictures of a batch, first to last; None where they, or what came behind them, are not known."""
    found = _as_drawn(tensor)
    if found is None:
        return None
    loader, part = found
    data = whole_of(loader.data)
    if data is None or data.escaped or loader.escaped or loader.open_arguments:
        return None
    if isinstance(data.cls, Library):
        return _of_library(data) if part == 0 else None
    return _of_sample(entry, loader, part)


def _of_library(data: Instance) -> list[Instance] | None:
    """What a data set of torchvision was told to do to its pictures."""
    told = {
        name: each for name, each in data.arguments.items() if isinstance(each, Instance) and each.kind == "transform"
    }
    if not data.libraries()[0].startswith("torchvision.") or data.open_arguments or "transforms" in data.arguments:
        return None
    if data.attributes.keys() & {"transform", "transforms"}:
        return None
    placed = next((each for name, each in told.items() if name.startswith("#")), None)
    return _flat(told.get("transform", placed))


def _as_drawn(value: Value | None) -> tuple[Loader, Hashable] | None:
    """The loader that gave a tensor, which was only moved since, and which part of its batch it is."""
    for _ in range(_MOST_MOVES):
        if not isinstance(value, Tensor) or value.edited or value.filled:
            return None
        if value.moved_from is None:
            return (value.batch_of, value.part) if value.batch_of is not None and value.role == "batch" else None
        value = value.moved_from
    return None


def _of_sample(entry: Entry, loader: Loader, part: Hashable) -> list[Instance] | None:
    """What the data set of a program did to a part of its samples."""
    made = [each for each in entry.of(SampleMade) if each.loader is loader]
    held, value = parts_of(loader), loader.attributes.get(SAMPLE)
    if part in held:
        value = held[part]
    elif part is not None:
        return None
    found: list[Instance] = []
    moves = [each for one in made for each in one.events if isinstance(each, Transformed)]
    for event in reversed(moves):
        if event.result is value and len(event.given) == 1:
            flat = _flat(event.transform)
            if flat is None or not all(each.known for each in event.where.conditions):
                return None
            found, value = [*flat, *found], event.given[0]
    return found or None


def _flat(value: Value | None, depth: int = 0) -> list[Instance] | None:
    """The transforms that one is made of; None where one is out of sight."""
    if (
        isinstance(value, Module)
        and value.name == "Sequential"
        and isinstance(value.items, list)
        and not value.more_items
    ):
        return _all(value.items, depth)
    if isinstance(value, Sequence) and not value.more:
        return _all(value.items, depth)
    if not isinstance(value, Instance) or value.kind != "transform" or value.open_arguments or depth > _DEPTH:
        return None
    if value.name == "Compose":
        return _flat(value.argument("transforms", 0), depth + 1)
    return [value] if value.libraries()[0].startswith("torchvision.") else None


def _all(values: list[Value], depth: int) -> list[Instance] | None:
    found = [_flat(each, depth + 1) for each in values]
    return None if None in found else [one for each in found if each is not None for one in each]


def gives_bytes(transforms: list[Instance]) -> bool:
    """Whether pictures surely come out as whole numbers from 0 to 255."""
    names = [each.name for each in transforms]
    start = next((at for at, name in enumerate(names) if name in ("PILToTensor", "ToImage", "ToImageTensor")), None)
    return start is not None and all(name in _KEEPING for name in names[start + 1 :])


def is_centred(transforms: list[Instance]) -> bool:
    """Whether the numbers of pictures were surely shifted, so that some of them are below 0."""
    if not transforms or transforms[-1].name != "Normalize":
        return False
    names = {each.name for each in transforms}
    mean = transforms[-1].argument("mean", 0)
    shifts = [number_of(each) for each in mean.items] if isinstance(mean, Sequence) else []
    return "ToTensor" in names and bool(shifts) and all(each is not None and 0 < each < 1 for each in shifts)
