from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LoaderMade, SumDivided
from lightlint.values.core import Constant, Library, Sequence
from lightlint.values.training import Instance, Loader, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_SPLITS = ("train", "split", "subset", "phase", "mode", "partition", "fold", "image_set", "background")


class SumOverOtherSamples(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Sums over the batches of a loader that are divided by the number of samples of others, too."""
        for path in entry.paths:
            for event in path.of(SumDivided):
                drawn = {loop.over for loop in event.loops}
                loader = drawn.pop() if len(drawn) == 1 else None
                if not isinstance(loader, Loader) or any(turn.loop in event.loops for turn in event.where.turns):
                    continue  # a part of the way through the loop, perhaps
                what = _counts_others(path, loader, event.count)
                if what and loader.site is not None:
                    yield Fault.at(
                        event, f"what the batches of a loader add up is divided by the length of {what}", loader.site
                    )


def _counts_others(path: Path, loader: Loader, count: object) -> str:
    """Of what a length counts samples, where a loader surely draws not all or none of them."""
    data = loader.data
    if not isinstance(data, Instance) or loader.open_arguments or data.escaped:
        return ""
    others = [each.loader for each in path.of(LoaderMade) if each.loader is not loader]
    if count == ("length", data.number):
        return "a data set of which its sampler draws a part" if _draws_part(loader, others) else ""
    base = data.arguments.get("dataset")
    if isinstance(base, Instance) and count == ("length", base.number):
        return "the whole data set, of which it draws a part" if _is_less(data, base, others) else ""
    for other in others:
        if (
            isinstance(other.data, Instance)
            and count == ("length", other.data.number)
            and _are_told_apart(data, other.data)
        ):
            return "another data set than its own"
        if isinstance(other.data, Instance) and count == ("length", other.number) and _are_told_apart(data, other.data):
            return "another loader than its own"
    return ""


def _draws_part(loader: Loader, others: list[Loader]) -> bool:
    """Whether a loader draws a part of the rows, as another one draws another part of them."""
    samplers = {each.sampler for each in others if each.data is loader.data} - {loader.sampler}
    return _chooses(loader.sampler) and any(map(_chooses, samplers))


def _chooses(sampler: object) -> bool:
    library = isinstance(sampler, Instance) and isinstance(sampler.cls, Library)
    return isinstance(sampler, Instance) and library and sampler.name == "SubsetRandomSampler"


def _is_less(data: Instance, base: Instance, others: list[Loader]) -> bool:
    """Whether a data set has not all samples of another: `random_split` gave it, or another loader has more of them."""
    parts = [each.data for each in others if isinstance(each.data, Instance) and "indices" in each.data.arguments]
    return _is_part(data, base) and ("indices" not in data.arguments or any(_is_part(each, base) for each in parts))


def _is_part(data: Instance, base: Instance) -> bool:
    return data.name == "Subset" and isinstance(data.cls, Library) and data.arguments.get("dataset") is base


def _rows(data: Instance) -> int | None:
    """How many rows a data set of tensors has, where the program says it."""
    first = data.arguments.get("tensors")
    first = first.items[0] if isinstance(first, Sequence) and first.items else first
    return first.sizes[0] if isinstance(first, Tensor) and first.sizes else None


def _are_told_apart(one: Instance, other: Instance) -> bool:
    """Whether two data sets surely are of different samples: parts of one split, or two splits of one collection."""
    base = one.arguments.get("dataset")
    if isinstance(base, Instance) and _is_part(one, base) and _is_part(other, base):
        return one is not other
    if None not in (_rows(one), _rows(other)) and _rows(one) != _rows(other):
        return True
    if one.cls is not other.cls and getattr(one.cls, "path", 0) != getattr(other.cls, "path", 1):
        return False
    for held, its in ((one.arguments, other.arguments), (one.attributes, other.attributes)):
        for name in _SPLITS:
            first, second = held.get(name), its.get(name)
            if isinstance(first, Constant) and isinstance(second, Constant) and first.value != second.value:
                return True
    return False
