"""What happens whatever tests say of which nothing is known: on one side of them or on the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

from lightlint.engine.choices import plain_key
from lightlint.engine.events import E, Event
from lightlint.engine.frames import Condition
from lightlint.values.core import Site

T = TypeVar("T")
_Outcomes = dict[Hashable, bool]
_MOST = 64


def anyhow(events: Iterable[E]) -> Iterator[E]:
    """Those of some events, of all paths of an entry, of which one or another happens however unknown tests come out."""
    yield from held_anyhow(events, lambda event: event.where.conditions)


def held_anyhow(things: Iterable[T], conditions: Callable[[T], Iterable[Condition]]) -> Iterator[T]:
    """Those of some things of which one or another is there however the unknown tests among its conditions come out."""
    given = [(each, _outcomes(conditions(each))) for each in things]
    unsure = [dict(pairs) for pairs in {frozenset(outcomes.items()) for _, outcomes in given if outcomes}]
    for each, outcomes in given:
        if not outcomes or (len(unsure) < _MOST and _covers(_beside(outcomes, unsure))):
            yield each


def follows(first: Event, then: Event) -> bool:
    """Whether one thing happens whenever another did: its unknown tests are those of the other."""
    return _outcomes(then.where.conditions).items() <= _outcomes(first.where.conditions).items()


def wherever(events: Iterable[tuple[E, bool]]) -> Iterator[E]:
    """Of some events of all paths, each with whether it is a fault: those behind an unknown test that are one on each path
    that comes there. Of what is behind none, tests elsewhere decide."""
    by_place: dict[Site, list[tuple[E, bool]]] = {}
    for each in events:
        by_place.setdefault(each[0].site, []).append(each)
    for found in by_place.values():
        if all(faulty and _outcomes(event.where.conditions) for event, faulty in found):
            yield found[0][0]


def _outcomes(conditions: Iterable[Condition]) -> _Outcomes:
    """How the unknown tests of some conditions came out: one by what it asks, else by its place."""
    found: _Outcomes = {}
    for each in conditions:
        if not each.known:
            key, negated = plain_key(each.key)
            found[each.site if key is None else key] = each.outcome != (key is not None and negated)
    return found


def _beside(outcomes: _Outcomes, others: list[_Outcomes]) -> list[_Outcomes]:
    """Those that have a test in common with one, or with one that has."""
    found, tests = [outcomes], set(outcomes)
    left = others
    while near := [each for each in left if not tests.isdisjoint(each)]:
        found += near
        tests.update(*near)
        left = [each for each in left if each not in near]
    return found


def _covers(cases: list[_Outcomes]) -> bool:
    """Whether one of some cases holds, however their tests come out."""
    if not cases or not all(cases):
        return bool(cases)
    test = next(iter(cases[0]))
    return all(
        _covers(
            [
                {key: value for key, value in each.items() if key != test}
                for each in cases
                if each.get(test, outcome) == outcome
            ]
        )
        for outcome in (True, False)
    )
