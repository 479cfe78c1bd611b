"""Runs made of hand-written events, for tests of probes."""

from __future__ import annotations

from typing import Any

from lightlint.confirm.judge import verdict
from lightlint.confirm.records import Event, Process, Run
from lightlint.confirm.verdict import Claim, Verdict

FILE = "/project/train.py"


def claim(name: str, probe: str, message: str = "", *, rows: tuple[int, int] = (10, 10), tier: str = "error") -> Claim:
    details = {str(number): each for number, each in enumerate(message.split("`")[1::2])}
    return Claim(0, "LL000", name, tier, message, FILE, *rows, probe, details)


def event(kind: str, **fields: Any) -> Event:
    return Event(kind=kind, **fields)


def at(row: int, function: str = "main", file: str = FILE) -> list[list[Any]]:
    """The places of an event that came from one row."""
    return [[file, row, function]]


def line(then: int | None = 11, raised: str = "", **changes: Any) -> Event:
    return event("line", finding=0, hit=1, seconds=0.001, then=then, raised=raised, changes=changes, time=1.0)


def run(*ranks: list[Event], ended: str = "finished", others: tuple[list[Event], ...] = ()) -> Run:
    """A run of so many ranks, and of other processes such as workers."""
    world = len(ranks)
    processes = [
        Process((event("start", pid=rank, rank=rank), event("rank", rank=rank, world=world, backend="gloo"), *events))
        for rank, events in enumerate(ranks)
    ]
    processes += [Process((event("start", pid=100 + at, forked=True), *events)) for at, events in enumerate(others)]
    return Run(tuple(processes), ended, 0 if ended == "finished" else 1)


def judged(about: Claim, found: Run) -> tuple[str, str]:
    """Outcome and reason."""
    result: Verdict = verdict(about, found, timed=found)
    return result.outcome.value, result.reason
