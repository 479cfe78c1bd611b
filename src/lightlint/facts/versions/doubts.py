"""What else in a project speaks of an older version than the one that was taken: then nothing that hangs on it is certain."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from lightlint.facts.project.roots import nearest_with
from lightlint.facts.versions.evidence import Choice, Place, Places, choice_in
from lightlint.facts.versions.hints import oldest_hint
from lightlint.facts.versions.pins import Kind, declared_within, top_of
from lightlint.facts.versions.pins.forks import FORK_OF
from lightlint.facts.versions.pins.pin import ELSEWHERE, Pin
from lightlint.facts.versions.versions import Version, releases


def older_than(package: str, is_named: bool, around: Places, directory: Path) -> tuple[Version, Pin] | None:
    """Where the oldest range ends that any folder of the project declares, and the pin that says so; None where none ends.

    Args:
        package: what is asked for, which nothing that speaks for the file bounds from above.
        is_named: whether something does from below.
        around: the places that may speak for the file.
        directory: the file's.
    """
    ends = [(each.range.upper, each.pin) for each in _within(package, directory) if each.range.upper is not None]
    ends += filter(None, [_unknown(package, around, f"{FORK_OF}{package}")])
    if ends:
        return min(ends, key=itemgetter(0))
    if is_named:
        return None
    top = top_of(directory)
    return _unknown(package, around, ELSEWHERE) or (oldest_hint(package, top) if nearest_with((".git",), top) else None)


def _within(package: str, directory: Path) -> Iterator[Choice]:
    """What any folder of the project declares."""
    top = top_of(directory)
    if nearest_with((".git",), top) is None:
        return
    for pins in declared_within(top):
        found = choice_in(package, Place(Kind.DECLARED, pins))
        if found is not None:
            yield found


def _unknown(package: str, around: Places, told: str) -> tuple[Version, Pin] | None:
    """The oldest release that is told apart, where a pin of some name tells that the version is unknown: a README that sends
    to another repository for what is needed, a fork."""
    for place in around:
        for pin in place.pins:
            if pin.name == told:
                return releases(package)[0].bumped(2), pin
    return None
