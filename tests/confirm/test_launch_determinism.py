"""Two runs compared by hand-written events."""

from __future__ import annotations

import pytest

from lightlint.confirm.determinism import Difference, compare
from lightlint.confirm.records import Event, Process, Run


def batch(number: int, digest: str, step: int) -> Event:
    return Event(kind="batch", loader=0, number=number, digest=digest, step=step)


def parameters(step: int, **tensors: str) -> Event:
    return Event(kind="parameters", when="after", step=step, tensors=tensors)


def run_of(*ranks: list[Event], ended: str = "finished") -> Run:
    processes = (
        Process((Event(kind="start", pid=rank), Event(kind="rank", rank=rank, world=len(ranks)), *events))
        for rank, events in enumerate(ranks)
    )
    return Run(tuple(processes), ended)


ONE = [batch(1, "a", 0), parameters(1, w="1", b="2"), batch(2, "b", 1), parameters(2, w="3", b="4")]


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (ONE, None),
        ([*ONE[:3], parameters(2, w="3", b="9")], Difference(0, 2, "`b`")),
        (
            [*ONE[:2], batch(2, "x", 1), parameters(2, w="9", b="9")],
            Difference(0, 1, "batch 2, as drawn from the loader"),
        ),
        (ONE[:2], None),
        ([ONE[0], parameters(1, w="1")], None),
    ],
)
def test_the_first_difference(other: list[Event], difference: Difference | None) -> None:
    found = compare(run_of(ONE), run_of(other))
    assert found.difference == difference
    assert found.compared == len(other)


def test_the_rank_that_differs_first_is_named() -> None:
    late = [*ONE[:3], parameters(2, w="9", b="4")]
    early = [ONE[0], parameters(1, w="9", b="2"), *ONE[2:]]
    found = compare(run_of(ONE, ONE), run_of(late, early))
    assert found.difference == Difference(1, 1, "`w`")
    assert found.sentence == "two runs with one seed differ first at step 1 on rank 1, in `w`"


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (Run((), "finished"), "the command wrote no record"),
        (run_of([], ended="raised"), "a run raised"),
        (run_of([]), "no batch was drawn and no optimizer stepped"),
    ],
)
def test_runs_that_cannot_be_compared(second: Run, problem: str) -> None:
    found = compare(run_of([]), second)
    assert found.problem == problem
    assert found.sentence == f"not compared: {problem}"


def test_operations_are_named_once() -> None:
    event = Event(kind="nondeterministic", operation="put_", file="train.py", line=3)
    found = compare(run_of(ONE), run_of(ONE), run_of([event, event]))
    assert found.operations == ("put_ (train.py:3)",)
