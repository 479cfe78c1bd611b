"""What losses, softmaxes, comparisons and dropouts are given."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import claim, event, judged, line, run

from lightlint.confirm.records import Event

LOGITS = {"low": -3.0, "high": 4.0, "rows": 2.0, "log_rows": 30.0}
PROBABILITIES = {"low": 0.1, "high": 0.9, "rows": 0.0, "log_rows": 3.0}
LOGARITHMS = {"low": -5.0, "high": -0.1, "rows": 7.0, "log_rows": 0.0}


def outcome(name: str, probe: str, *events: Event, message: str = "") -> str:
    return judged(claim(name, probe, message), run([line(), *events]))[0]


@pytest.mark.parametrize(
    ("name", "function", "given", "expected"),
    [
        ("softmax-before-cross-entropy", "cross_entropy", PROBABILITIES, "confirmed"),
        ("softmax-before-cross-entropy", "cross_entropy", LOGITS, "refuted"),
        ("softmax-before-cross-entropy", "cross_entropy", LOGARITHMS, "refuted"),
        ("softmax-before-cross-entropy", "nll_loss", PROBABILITIES, "not observable"),
        ("sigmoid-before-bce-with-logits", "binary_cross_entropy_with_logits", PROBABILITIES, "confirmed"),
        ("sigmoid-before-bce-with-logits", "binary_cross_entropy_with_logits", LOGITS, "refuted"),
        ("nll-without-log-softmax", "nll_loss", PROBABILITIES, "confirmed"),
        ("nll-without-log-softmax", "nll_loss", LOGITS, "confirmed"),
        ("nll-without-log-softmax", "nll_loss", LOGARITHMS, "refuted"),
        ("nll-without-log-softmax", "nll_loss", {**LOGITS, "high": -1.0}, "open"),
        ("kl-div-input-not-log", "kl_div", PROBABILITIES, "confirmed"),
        ("kl-div-input-not-log", "kl_div", LOGARITHMS, "refuted"),
        ("kl-div-input-not-log", "kl_div", {**LOGITS, "high": float("nan")}, "open"),
    ],
)
def test_range(name: str, function: str, given: dict[str, Any], expected: str) -> None:
    call = event("loss-call", function=function, findings=[0], **given)
    assert outcome(name, "loss-input-range", call) == expected


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([[8, 1], [8], [8, 8]], "confirmed"),
        ([[8], [8], [8]], "refuted"),
        ([[8, 3], [3], [8, 3]], "refuted"),
    ],
)
def test_compared_shapes(shapes: list[list[int]], expected: str) -> None:
    assert outcome("keepdim-broadcast", "compared-shapes", event("compare", shapes=shapes, findings=[0])) == expected


@pytest.mark.parametrize(
    ("dimensions", "picked", "expected"), [(3, 0, "confirmed"), (4, 1, "confirmed"), (2, 1, "refuted")]
)
def test_dimension(dimensions: int, picked: int, expected: str) -> None:
    call = event("softmax", function="softmax", dimensions=dimensions, picked=picked, findings=[0])
    assert outcome("softmax-without-dim", "normalised-dimension", call) == expected


@pytest.mark.parametrize(
    ("owner", "training", "p", "expected"),
    [
        (False, True, 0.5, "confirmed"),
        (False, True, 0.0, "refuted"),
        (False, False, 0.5, "refuted"),
        (True, True, 0.5, "not observable"),
        (None, True, 0.5, "not observable"),
    ],
)
def test_dropout_in_eval_mode(owner: bool | None, training: bool, p: float, expected: str) -> None:
    call = event("dropout", function="dropout", p=p, training=training, owner=owner, changed=0.5, findings=[0])
    assert outcome("functional-dropout-always-on", "eval-is-repeatable", call) == expected


@pytest.mark.parametrize(("total", "expected"), [(6.0, "confirmed"), (40.0, "refuted"), (5.0, "open")])
def test_the_loss_that_is_reported(total: float, expected: str) -> None:
    means = [
        event("loss-call", function="mse_loss", findings=[], reduction="mean", value=value, size=size)
        for value, size in ((2.0, 8), (4.0, 6))
    ]
    events = [event("pass", loader=0, number=1), *means, line(variables={"total": [total, total]})]
    about = claim("loss-average-denominator", "reported-loss", "`total` adds up means over batches")
    assert judged(about, run(events))[0] == expected


def test_a_second_log_softmax_is_what_a_note_says() -> None:
    note = claim("softmax-before-cross-entropy", "loss-input-range", "applies log_softmax again", tier="note")
    call = event("loss-call", function="cross_entropy", findings=[0], **LOGARITHMS)
    assert judged(note, run([line(), call]))[0] == "confirmed"
