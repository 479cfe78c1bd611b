"""Weights before and after: writes behind autograd's back, steps that change nothing, runs without a step."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import claim, event, judged, line, run

from lightlint.confirm.records import Event

UNSEEN = {"parameters": {"w": [["aa", 2], ["bb", 2]]}}


def parameters(when: str, crc: str, optimizer: int | None = 0) -> Event:
    return event("parameters", when=when, optimizer=optimizer, tensors={"w": crc}, versions={"w": 1})


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ([["aa", 2], ["bb", 2]], "confirmed"),
        ([["aa", 2], ["bb", 3]], "refuted"),
        ([["aa", 2], ["aa", 2]], "open"),
        ([None, ["bb", 2]], "open"),
    ],
)
def test_changed_behind_autograd(seen: list[Any], expected: str) -> None:
    about = claim("param-data-mutation-in-step", "weights-changed-unseen")
    assert judged(about, run([line(parameters={"w": seen})]))[0] == expected


def test_it_says_whether_ranks_stay_equal() -> None:
    about = claim("param-data-mutation-in-step", "weights-changed-unseen")
    same = [line(**UNSEEN), parameters("after", "cc"), parameters("after", "dd")]
    assert "the ranks stay equal" in judged(about, run(same, same))[1]
    other = [parameters("after", "cc"), parameters("after", "ee")]
    assert "from step 2 on" in judged(about, run(same, other))[1]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([parameters("backward", "aa", None)] * 3, "confirmed"),
        ([parameters("backward", "aa", None), parameters("backward", "bb", None)], "refuted"),
        ([parameters("before", "aa"), parameters("after", "bb")], "refuted"),
        ([parameters("before", "aa"), parameters("after", "aa")], "open"),
        ([], "not observable"),
    ],
)
def test_weights_change(events: list[Event], expected: str) -> None:
    for name, probe in (
        ("manual-no-optimizer-step", "weights-change"),
        ("configure-optimizers-no-return", "parameters-change"),
    ):
        assert judged(claim(name, probe), run(events))[0] == expected


@pytest.mark.parametrize(
    ("cleared", "at_step", "findings", "expected"),
    [(4, 0, [0], "confirmed"), (4, 3, [0], "open"), (0, 0, [0], "open"), (4, 0, [1], "open")],
)
def test_cleared_before_the_step(cleared: int, at_step: int, findings: list[int], expected: str) -> None:
    events = [
        event("backward"),
        event("zero-grad", optimizers=[0], held=cleared, findings=findings),
        event("update", optimizer=0, held=at_step, findings=[]),
    ]
    about = claim("zero-grad-before-step", "weights-unchanged")
    assert judged(about, run([line(), *events]))[0] == expected
