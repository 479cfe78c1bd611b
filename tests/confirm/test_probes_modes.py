"""Modes at the forward passes, frozen parameters and those that no optimizer holds."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import claim, event, judged, line, run

from lightlint.confirm.records import Event

TRAINING, EVALUATING, PLAIN = [["drop"], list[str]()], [list[str](), ["drop"]], [list[str](), list[str]()]


def forward(acting: list[list[str]] = TRAINING, *, findings: list[int] | None = None, **fields: Any) -> Event:
    usual = {
        "module": 0,
        "type": "Net",
        "training": acting is TRAINING,
        "grad": True,
        "trainable": True,
        "stage": "train",
    }
    return event("forward", acting=acting, findings=findings or [], **{**usual, "backwards": 0, **fields})


def outcome(name: str, probe: str, *events: Event, message: str = "") -> str:
    return judged(claim(name, probe, message), run([line(), *events]))[0]


@pytest.mark.parametrize(("acting", "expected"), [(EVALUATING, "confirmed"), (TRAINING, "refuted"), (PLAIN, "open")])
def test_mode_at_the_first_batch(acting: list[list[str]], expected: str) -> None:
    assert outcome("eval-mode-before-fit", "training-flags", forward(acting)) == expected


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (forward(EVALUATING), "confirmed"),
        (forward(TRAINING), "open"),
        (forward(EVALUATING, findings=[0]), "not observable"),  # the line's own pass is meant to be in eval mode
        (forward(EVALUATING, grad=False), "not observable"),
    ],
)
def test_mode_that_leaks(second: Event, expected: str) -> None:
    assert outcome("eval-mode-leak", "training-flags", forward(), second) == expected


def test_a_mode_that_is_not_restored_shows_at_the_passes_that_are_trained() -> None:
    epoch = [forward(backwards=0), forward(backwards=1), forward(EVALUATING, backwards=2)]
    assert (
        outcome("train-mode-not-restored", "training-flags", *epoch, forward(backwards=2), forward(backwards=3))
        == "open"
    )
    later = [forward(EVALUATING, backwards=2), forward(EVALUATING, backwards=3)]
    assert outcome("train-mode-not-restored", "training-flags", *epoch, *later) == "confirmed"


def test_training_mode_in_evaluation() -> None:
    passes = [forward(EVALUATING, stage="validate"), forward(TRAINING, stage="validate")]
    assert outcome("train-mode-in-eval-hook", "training-flags", *passes) == "confirmed"
    assert outcome("train-mode-in-eval-hook", "training-flags", passes[0], forward()) == "refuted"
    assert outcome("train-mode-in-eval-hook", "training-flags", forward()) == "not observable"


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        ([forward(TRAINING, findings=[0], grad=False)], "confirmed"),
        ([forward(EVALUATING, findings=[0], grad=False)], "refuted"),
        ([forward(PLAIN, findings=[0], grad=False)], "refuted"),
        ([forward(TRAINING, findings=[0])], "not observable"),
    ],
)
def test_evaluated_without_eval(passes: list[Event], expected: str) -> None:
    assert outcome("validation-without-eval-mode", "training-flags", *passes) == expected


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        ([forward(EVALUATING, findings=[0])], "confirmed"),
        ([forward(EVALUATING, findings=[0], grad=False)], "refuted"),
        ([forward(EVALUATING, findings=[0]), forward(TRAINING, findings=[0])], "open"),
        ([forward(EVALUATING)], "not observable"),
    ],
)
def test_autograd_in_evaluation(passes: list[Event], expected: str) -> None:
    assert outcome("eval-without-no-grad", "grad-enabled-in-eval", *passes) == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"model": [4, 4]}, "confirmed"),
        ({"model": [4, 2]}, "refuted"),
        ({"model": [0, 0]}, "not observable"),
        ({"other": [4, 4]}, "not observable"),
        ({"model": [None, 4]}, "not observable"),
    ],
)
def test_what_a_line_freezes(seen: dict[str, Any], expected: str) -> None:
    about = claim("module-requires-grad-attribute", "trainable-parameters", "`requires_grad` of `model.body`")
    assert judged(about, run([line(trainable=seen)]))[0] == expected


@pytest.mark.parametrize(("left", "expected"), [(["w"], "confirmed"), ([], "refuted")])
def test_frozen_behind_a_step(left: list[str], expected: str) -> None:
    looks = [
        event("frozen", when="on_train_start", off=[], count=0, total=2),
        event("frozen", when="on_train_batch_end", off=left, count=len(left), total=2),
        event("frozen", when="end", off=left, count=len(left), total=2),
    ]
    assert outcome("toggle-without-untoggle", "requires-grad-after-step", *looks) == expected


@pytest.mark.parametrize(
    ("missing", "expected"), [(["head.weight"], "confirmed"), ([], "refuted"), (["other.weight"], "open")]
)
def test_what_no_optimizer_holds(missing: list[str], expected: str) -> None:
    looks = event("optimized", when="on_train_batch_end", held=2, missing=missing)
    message = "`self.head` gets its `Linear` after the optimizer"
    name = "module-created-after-configure-optimizers"
    assert outcome(name, "parameters-in-optimizer", looks, message=message) == expected
