from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Forward
from lightlint.explore.pictures import transforms_of
from lightlint.explore.questions.evaluation import evaluated_loaders
from lightlint.explore.questions.queries import identity_of
from lightlint.models.data.pictures.configured import numbers_named
from lightlint.values.core import Sequence, Value, number_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_NONE: tuple[Hashable, ...] = ()


class NormalisedOtherwise(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Pictures that a model is evaluated on, and that are normalised otherwise than those that it was trained on."""
        evaluated = evaluated_loaders(entry)
        trained = [(event, how) for event in entry.of(Forward) if event.training for how in _ways(entry, event)]
        for _, event in evaluated.values():
            mine = [
                how
                for each, how in trained
                if identity_of(each.module.unwrapped()) == identity_of(event.module.unwrapped())
            ]
            for how, last in _ways(entry, event):
                others = {each for each, _ in mine}
                if others and how not in others and last.site is not None:
                    yield Fault(
                        last.site,
                        _message(how, next(iter(others))),
                        None,
                        tuple(one.site for _, one in mine if one.site),
                    )


def _ways(entry: Entry, event: Forward) -> Iterator[tuple[tuple[Hashable, ...], Instance]]:
    """How the pictures of a pass were normalised, and by which transform, the last of all where by none."""
    if len(event.inputs) != 1:
        return
    transforms = transforms_of(entry, event.inputs[0])
    if not transforms or not any(each.name == "ToTensor" for each in transforms):
        return
    by = [each for each in transforms if each.name == "Normalize"]
    told = [_numbers(each) for each in by]
    if None not in told and len(by) < 2:
        yield (told[0] or _NONE, by[0]) if by else (_NONE, transforms[-1])


def _numbers(transform: Instance) -> tuple[Hashable, ...] | None:
    """Mean and deviation of a `Normalize`; None where they are out of sight."""
    given = [transform.argument(name, place) for place, name in enumerate(("mean", "std"))]
    found = [_as_numbers(each) for each in given]
    return None if None in found else tuple(found)


def _as_numbers(value: Value | None) -> tuple[float, ...] | None:
    items = value.items if isinstance(value, Sequence) and not value.more else [] if value is None else [value]
    numbers = numbers_named(value) or [number_of(each) for each in items]
    known = [each for each in numbers if each is not None]
    if not known or len(known) < len(numbers):
        return None
    return (known[0],) if len(set(known)) == 1 else tuple(known)


def _message(how: tuple[Hashable, ...], other: tuple[Hashable, ...]) -> str:
    if not how:
        return "the pictures that the model is evaluated on are not normalised, and those that it is trained on are"
    if not other:
        return "the pictures that the model is evaluated on are normalised, and those that it is trained on are not"
    return (
        "the pictures that the model is evaluated on are normalised by other numbers than those that it is trained on"
    )
