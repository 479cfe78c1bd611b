from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events.huggingface import Rewarded
from lightlint.values.core import Sequence, Unknown, number_of, written
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_ABSOLUTE = ("abs", "absolute", "fabs")
_DEPTH = 5
_MESSAGE = "this reward is the distance of a length from the one that is wanted: it is highest for completions that are farthest from it"


class DistanceRewarded(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Rewards that grow with the distance of a completion's length from a number."""
        for event in entry.of(Rewarded):
            rewards = event.result.items if isinstance(event.result, Sequence) else []
            if rewards and all(map(_is_distance, rewards)) and _counts(event):
                yield Fault(event.returned_at or event.site, _MESSAGE, None, (event.site,))


def _counts(event: Rewarded) -> bool:
    """Whether a reward is not weighed, or by a number that is surely above zero."""
    settings = event.settings
    weights = settings.arguments.get("reward_weights") if isinstance(settings, Instance) else None
    if settings is None or settings.open_arguments or settings.escaped:
        return False
    if weights is None:
        return True
    items = weights.items if isinstance(weights, Sequence) and not weights.more else []
    return event.place < len(items) and (_number(items[event.place]) or 0) > 0


def _is_distance(value: Value, depth: int = 0) -> bool:
    """Whether a number is the distance of a length from another number, or goes up and down with it."""
    name, parts = value.terms or ("", ())
    if isinstance(value, Unknown) and value.hint in _ABSOLUTE and not parts:
        name, parts = "abs", tuple(value.lent)
    if depth > _DEPTH or not parts:
        return False
    if name == "abs":
        apart, sides = parts[0].terms or ("", ())
        return (
            apart == "-"
            and len(sides) > 1
            and sorted(_number(each) is not None for each in sides) == [False, True]
            and any(map(_is_length, sides))
        )
    left, *rest = parts
    if not rest:
        return False
    right = rest[0]
    if name in ("*", "/") and (_number(right) or 0) > 0:
        return _is_distance(left, depth + 1)
    if name == "*" and (_number(left) or 0) > 0:
        return _is_distance(right, depth + 1)
    if name in ("+", "-") and _number(right) is not None:
        return _is_distance(left, depth + 1)
    return name == "+" and _number(left) is not None and _is_distance(right, depth + 1)


def _number(value: Value) -> float | None:
    """A number of the program, or the one that an option is by default."""
    return number_of(written(value))


def _is_length(value: Value) -> bool:
    return isinstance(value, Unknown) and isinstance(value.key, tuple) and value.key[:1] == ("length",)
