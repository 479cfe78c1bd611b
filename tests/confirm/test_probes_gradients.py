"""Gradients between the backward pass and the step: what the recorded events prove."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import claim, event, judged, line, run

from lightlint.confirm.records import Event

HERE, ELSEWHERE = [0], list[int]()


def backward(before: int = 0, after: int = 4, *, findings: list[int] = ELSEWHERE, **fields: Any) -> Event:
    norms = {"before": {"0": [before, float(before)]}, "after": {"0": [after, float(after)]}}
    return event("backward", findings=findings, **{"leaf": False, "mean": False, "through": "", **norms, **fields})


def update(held: int = 4, *, findings: list[int] = HERE, **fields: Any) -> Event:
    usual = {"optimizer": 0, "none": 0, "total": 4, "norm": float(held), "state": 0, "scaler": None, "backwards": 0}
    return event("update", held=held, findings=findings, **{**usual, **fields})


def zero_grad(held: int, findings: list[int] = HERE) -> Event:
    return event("zero-grad", by="optimizer", optimizers=[0], held=held, total=4, findings=findings, backwards=0)


def clip(held: int = 4, **fields: Any) -> Event:
    usual = {"function": "clip_grad_norm_", "limit": 1.0, "parameters": 4, "optimizers": [0], "scaler": None}
    return event("clip", findings=HERE, held=held, **{"before": 9.0, "after": 1.0, **usual, **fields})


def outcome(name: str, probe: str, *events: Event, message: str = "") -> str:
    return judged(claim(name, probe, message), run([line(), *events]))[0]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([backward(0), update(), backward(4), update(), backward(4), update()], "confirmed"),
        ([backward(0), update(), backward(0), update()], "refuted"),
        # a GAN's other backward pass comes while the gradients are still there, its own finds them gone
        ([backward(0), update(), backward(4), backward(0), update()], "refuted"),
        ([backward(0), update(), backward(4), update(), backward(0), update()], "open"),
        ([backward(0), update()], "not observable"),
    ],
)
def test_carried_over(events: list[Event], expected: str) -> None:
    assert outcome("missing-zero-grad", "gradients-carried-over", *events) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([clip(held=0), clip(held=0), update()], "confirmed"),
        ([clip(), zero_grad(4), clip(), zero_grad(4)], "confirmed"),
        ([clip(), update(), clip(), update()], "refuted"),
        ([clip(), update(), clip(), zero_grad(4)], "open"),
        ([], "not observable"),
    ],
)
def test_clipped_where_it_counts(events: list[Event], expected: str) -> None:
    assert outcome("clip-grad-wrong-place", "gradients-clipped", *events) == expected


@pytest.mark.parametrize(
    ("scaler", "expected"),
    [
        ({"scale": 65536.0, "stage": "READY"}, "confirmed"),
        ({"scale": 65536.0, "stage": "UNSCALED"}, "refuted"),
        ({"scale": 1.0, "stage": "READY"}, "not observable"),
        (None, "not observable"),
    ],
)
def test_clipped_while_scaled(scaler: dict[str, Any] | None, expected: str) -> None:
    assert outcome("clip-before-unscale", "gradients-clipped", clip(scaler=scaler)) == expected


def test_a_generator_that_is_used_up_gives_no_parameters() -> None:
    assert outcome("exhausted-parameters", "gradients-clipped", clip(parameters=0)) == "confirmed"
    assert outcome("exhausted-parameters", "gradients-clipped", clip()) == "refuted"
    made = event("optimizer", optimizer=0, type="SGD", parameters=[0], groups=[1, 0], findings=HERE)
    assert outcome("exhausted-parameters", "gradients-clipped", made) == "confirmed"


@pytest.mark.parametrize(("norms", "expected"), [([0.5, 3.0], "confirmed"), ([0.5, 1.0004], "open")])
def test_norm_at_the_step(norms: list[float], expected: str) -> None:
    updates = [update(norm=norm) for norm in norms]
    assert outcome("clip-grad-in-training-step", "clipped-norm", clip(), *updates) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([backward(), zero_grad(4), backward(), update()], "confirmed"),
        ([backward(), update(), zero_grad(4), backward(), update(), zero_grad(4)], "refuted"),
        ([backward(), zero_grad(4, ELSEWHERE)], "not observable"),
    ],
)
def test_gradients_lost_in_a_window(events: list[Event], expected: str) -> None:
    assert outcome("zero-grad-in-training-step", "gradients-survive", *events) == expected


@pytest.mark.parametrize(
    ("mean", "at_step", "expected"), [(True, 8.0, "confirmed"), (False, 8.0, "open"), (True, 4.0, "open")]
)
def test_means_that_add_up(mean: bool, at_step: float, expected: str) -> None:
    passes = [backward(0, 4, findings=HERE, mean=mean), backward(4, 8, findings=HERE, mean=mean)]
    found = outcome("accumulation-not-scaled", "accumulated-gradient-norm", *passes, update(8, norm=at_step))
    assert found == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([backward(0, 0, leaf=True)] * 2, "confirmed"),
        ([backward(0, 4), backward(0, 4)], "refuted"),
        ([backward(0, 4), backward(4, 4, leaf=True)], "confirmed"),
        ([], "not observable"),
    ],
)
def test_parameters_reached(events: list[Event], expected: str) -> None:
    assert outcome("loss-rewrapped", "parameters-without-gradient", *events) == expected


@pytest.mark.parametrize(("with_graph", "expected"), [(0, "confirmed"), (1, "refuted")])
def test_penalty(with_graph: int, expected: str) -> None:
    grad = event("grad", findings=HERE, count=1, with_graph=with_graph)
    assert outcome("penalty-without-create-graph", "penalty-gradient", grad, grad) == expected


@pytest.mark.parametrize(
    ("state", "held", "parameters", "expected"),
    [
        (4, 4, [0, 1], "confirmed"),
        (0, 4, [0, 1], "refuted"),
        (0, 0, [0, 1], "open"),
        (4, 4, [2, 3], "not observable"),
    ],
)
def test_state_of_an_optimizer_made_anew(state: int, held: int, parameters: list[int], expected: str) -> None:
    first = event("optimizer", optimizer=0, type="Adam", parameters=[0, 1], groups=[2], findings=HERE)
    second = event("optimizer", optimizer=1, type="Adam", parameters=parameters, groups=[2], findings=HERE)
    updates = [update(held), event("updated", optimizer=0, state=state)]
    assert outcome("optimizer-recreated-in-loop", "optimizer-state-kept", first, *updates, second) == expected
