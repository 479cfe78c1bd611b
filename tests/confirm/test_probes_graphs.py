"""Graphs that grow: what their sizes at the finding's line say of it."""

from __future__ import annotations

import pytest

from lightlint.confirm.judge import verdict
from lightlint.confirm.records import Event, Process, Run
from lightlint.confirm.verdict import Claim, Outcome

CLAIM = Claim(
    0, "LL102", "graph-kept-by-accumulation", "warning", "`total` keeps", "t.py", 5, 5, "graph-growth", {"0": "total"}
)
Size = list[int] | None


def line(before: Size, after: Size, then: int | None = 6) -> Event:
    changes = {"graphs": {"total": [before, after]}}
    return Event(kind="line", finding=0, changes=changes, then=then, raised="", seconds=0.0)


def run(*events: Event) -> Run:
    return Run((Process((Event(kind="start", rank=0), *events)),))


def test_bytes_that_grow_are_a_leak() -> None:
    found = verdict(CLAIM, run(line(None, [3, 1024]), line([3, 1024], [6, 2048]), line([6, 2048], [9, 3072])))
    assert (found.outcome, "1 KiB" in found.reason) == (Outcome.CONFIRMED, True)


def test_a_sum_that_begins_anew_in_each_epoch_is_looked_at_within_one() -> None:
    epoch = [line(None, [3, 1024]), line([3, 1024], [6, 2048]), line([6, 2048], [9, 3072])]
    assert verdict(CLAIM, run(*epoch, *epoch)).outcome is Outcome.CONFIRMED


def test_a_run_that_was_cut_within_the_line_adds_nothing() -> None:
    events = [line(None, [3, 1]), line([3, 1], [6, 2]), line([6, 2], [9, 3]), line([9, 3], [9, 3], then=None)]
    assert verdict(CLAIM, run(*events)).outcome is Outcome.CONFIRMED


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([line(None, [3, 0]), line([3, 0], [6, 0]), line([6, 0], [9, 0])], Outcome.OPEN),
        ([line(None, [0, 0]), line([0, 0], [0, 0])], Outcome.REFUTED),
        ([line(None, [3, 9]), line(None, [3, 9]), line(None, [3, 9])], Outcome.OPEN),
        ([line(None, [3, 9]), line(None, [3, 9]), line(None, [0, 0]), line([0, 0], [0, 0])], Outcome.OPEN),
    ],
)
def test_what_does_not_grow_is_no_leak(events: list[Event], outcome: Outcome) -> None:
    assert verdict(CLAIM, run(*events)).outcome is outcome
