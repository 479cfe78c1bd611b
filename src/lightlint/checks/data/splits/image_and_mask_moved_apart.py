from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, CalledUnknown, SampleMade, Transformed
from lightlint.models.data.transforms import drawing
from lightlint.values.core import Unknown, is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_MODES = ("1", "L", "P")  # of pictures with one number for each place
_SEEDING = ("manual_seed", "seed", "seed_everything", "set_rng_state", "setstate", "fork_rng")
_TO_CLASSES = ("long", "bool", "int", "round", "byte")


class ImageAndMaskMovedApart(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Random moves that are drawn once for a picture, and once more for the mask that belongs to it."""
        for sample in entry.of(SampleMade):
            seeded = any(isinstance(each, Called) and each.name in _SEEDING for each in sample.events)
            moved = [each for each in sample.events if isinstance(each, Transformed) and _moves(each)]
            masks = [each for each in moved if _is_mask(sample, each)]
            pictures = [each for each in moved if each not in masks]
            if seeded or not masks or not pictures or any(len(each.given) != 1 for each in moved):
                continue
            if masks[0].given[0] is not pictures[0].given[0]:
                name = next(drawing(masks[0].transform, moving=True)).name
                message = f"`{name}` draws anew for the mask: it is moved otherwise than its picture"
                yield Fault.at(masks[0], message, pictures[0].site)


def _moves(event: Transformed) -> bool:
    return next(drawing(event.transform, moving=True), None) is not None


def _is_mask(sample: SampleMade, event: Transformed) -> bool:
    """Whether what is moved is a map of classes: a picture of one channel, or something that is made classes of."""
    if any(is_constant(each, *_MODES) for each in _origins(event.given[0])):
        return True
    results = [event.result, *(each.result for each in sample.events if isinstance(each, Transformed))]
    for each in sample.events:
        if isinstance(each, CalledUnknown) and getattr(each.callee, "hint", "") in _TO_CLASSES:
            holder = getattr(each.callee, "holder", None)
            if holder is event.result and holder in results:
                return True
    return False


def _origins(value: Value, depth: int = 0) -> Iterator[Value]:
    yield value
    for each in getattr(value, "lent", ()) if isinstance(value, Unknown) and depth < len("lent") else ():
        yield from _origins(each, depth + 1)
