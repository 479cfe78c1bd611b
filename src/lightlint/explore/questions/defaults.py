"""The rehearsals that a run without options of its own can be one of."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import eq, le, lt
from typing import Any

from lightlint.engine.events import E
from lightlint.explore.rehearsals import Entry, Path
from lightlint.values.core import Constant, Site, Unknown, Value

_TESTS: dict[object, Callable[[Any, Any], bool]] = {"==": eq, "<": lt, "<=": le}
_Options = Mapping[Hashable, Constant]


def of_default_run(entry: Entry, values: Iterable[Value | None]) -> Entry:
    """An entry without the rehearsals in which some values, as far as they are options, are not what they are by default."""
    told = (each for each in values if isinstance(each, Unknown) and each.key is not None)
    options = {each.key: each.default for each in told if each.key is not None and each.default is not None}
    paths = [path for path in entry.paths if not any(_denies(*each, options) for each in path.machine.answers.items())]
    return Entry(entry.name, paths, entry.turned, entry.whole)


def by_option(entry: Entry, kind: type[E], is_fault: Callable[[E], bool]) -> set[Site]:
    """The places where an event is a fault only in runs that are given some option of the command line, and none by default."""
    faulty: dict[Site, list[set[Hashable]]] = {}
    right: dict[Site, list[Path]] = {}
    for path in entry.paths:
        events = path.of(kind)
        faults = {event.site for event in events if is_fault(event)}
        for site in {event.site for event in events}:
            if site in faults:
                faulty.setdefault(site, []).append(_given(path))
            else:
                right.setdefault(site, []).append(path)
    return {
        site
        for site, given in faulty.items()
        if any(_spares(set.intersection(*given), each) for each in right.get(site, ()))
    }


def _given(path: Path) -> set[Hashable]:
    """The tests on options that come out in a rehearsal as they do not by default."""
    options = path.machine.defaults
    return (
        {key for key, outcome in path.machine.answers.items() if _denies(key, outcome, options)} if options else set()
    )


def _spares(tests: set[Hashable], path: Path) -> bool:
    """Whether one of some tests on options comes out in a rehearsal as by default."""
    return not (tests & path.machine.answers.keys()) <= _given(path)


def _denies(key: Hashable, outcome: bool, options: _Options) -> bool:
    """Whether a test came out as it does not for the defaults."""
    if key in options:
        return bool(options[key].value) != outcome
    match key:
        case (word, left, right) if word in _TESTS and (left in options or right in options):
            first, second = _constant(left, options), _constant(right, options)
            return first is not None and second is not None and _compare(word, first, second) not in (None, outcome)
    return False


def _constant(key: Hashable, options: _Options) -> Constant | None:
    match key:
        case ("constant", _, value):
            return Constant(value)
    return options.get(key)


def _compare(word: object, first: Constant, second: Constant) -> bool | None:
    try:
        return bool(_TESTS[word](first.value, second.value))
    except TypeError:
        return None
