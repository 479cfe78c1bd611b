"""What follows from an injected error, by hand-written events."""

from __future__ import annotations

import pytest

from lightlint.confirm.judge import verdict
from lightlint.confirm.records import Event, Process, Run
from lightlint.confirm.verdict import Claim, Outcome

CLAIM = Claim(0, "LL106", "training-step-swallows-exception", "error", "", "/p/train.py", 13, 14, "injected-failure")
INJECTED = Event(kind="injected", finding=0, row=11, type="RuntimeError")


def run_of(*ranks: list[Event], ended: str = "finished") -> Run:
    processes = (
        Process((Event(kind="start", pid=rank), Event(kind="rank", rank=rank, world=len(ranks)), *events))
        for rank, events in enumerate(ranks)
    )
    return Run(tuple(processes), ended)


def error(message: str, *causes: str) -> Event:
    return Event(kind="exception", type="RuntimeError", message=message, frames=[], causes=list(causes))


STEPS = [Event(kind="step", n=number) for number in (1, 2)]
END = Event(kind="end", reason="finished")
SKIPPED = [Event(kind="step", n=number, backwards=passes) for number, passes in ((1, 1), (2, 1), (3, 2))]
PLAIN = run_of([*STEPS, END])


@pytest.mark.parametrize(
    ("run", "outcome", "words"),
    [
        (run_of([INJECTED, *STEPS, END]), Outcome.CONFIRMED, "rank 0 took 2 steps"),
        (
            run_of([INJECTED, *SKIPPED, END]),
            Outcome.CONFIRMED,
            "rank 0 took 3 steps, 1 of them without a backward pass",
        ),
        (run_of([INJECTED, error("injected by lightlint")]), Outcome.REFUTED, "came out as RuntimeError"),
        (run_of([INJECTED, error("wrapped", "ValueError: injected by lightlint")]), Outcome.REFUTED, "came out"),
        (
            run_of([*STEPS, error("Connection closed by peer")], [INJECTED, error("Skipping the `training_step`")]),
            Outcome.CONFIRMED,
            "rank 1 raised RuntimeError: Skipping the `training_step`",
        ),
        (run_of([*STEPS], [INJECTED], ended="stalled"), Outcome.CONFIRMED, "rank 0 hung after 2 steps"),
        (run_of([*STEPS, END]), Outcome.NOT_OBSERVABLE, "was not entered"),
    ],
)
def test_injected_failure(run: Run, outcome: Outcome, words: str) -> None:
    found = verdict(CLAIM, PLAIN, injected=run)
    assert (found.outcome, words in found.reason) == (outcome, True), found
    assert found.scope.endswith("injected")


def test_without_a_fault_nothing_is_said() -> None:
    found = verdict(CLAIM, PLAIN)
    assert (found.outcome, found.reason) == (
        Outcome.NOT_OBSERVABLE,
        "shows only when its `try` fails: add `--inject`",
    )
