"""Backward passes and steps in a batch: who starts them and what they find."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import claim, event, judged, line, run

from lightlint.confirm.records import Event


def batches(count: int, every: int, *, length: int | None = None, cut: bool = False) -> list[Event]:
    """A pass that takes a step each so many batches."""
    events = [event("loader", loader=0, length=length or count), event("pass", loader=0, number=1)]
    for number in range(1, count + 1):
        events += [event("batch", loader=0, number=number), event("backward", findings=[], through="")]
        if number % every == 0:
            events.append(event("step", n=number // every))
    return [*events, event("pass-end", loader=0, number=1, batches=count, cut=cut)]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (batches(13, 4), "confirmed"),
        (batches(12, 4), "refuted"),
        (batches(12, 4, length=40, cut=True), "refuted"),
        (batches(12, 4, length=41, cut=True), "open"),
        (batches(3, 4), "not observable"),
    ],
)
def test_tail(events: list[Event], expected: str) -> None:
    about = claim("accumulation-tail-dropped", "steps-per-batch")
    assert judged(about, run([line(), *events]))[0] == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([line(raised="NameError: name 'i' is not defined")], "confirmed"),
        ([line(variables={"i": [7, 7]}), line(variables={"i": [7, 7]})], "confirmed"),
        ([line(variables={"i": [7, 7]}), line(variables={"i": [8, 8]})], "refuted"),
        ([line()], "open"),
    ],
)
def test_a_counter_that_never_moves(lines: list[Event], expected: str) -> None:
    about = claim("accumulation-index-unbound", "steps-per-batch", "this loop never changes `i`")
    assert judged(about, run([*lines, *batches(8, 1)]))[0] == expected


@pytest.mark.parametrize(
    ("optimizers", "expected"), [((0, 0), "confirmed"), ((0, 1), "refuted"), ((None, 1), "not observable")]
)
def test_a_second_step_in_automatic_optimization(optimizers: tuple[int | None, int], expected: str) -> None:
    here, theirs = optimizers
    events = [event("update", optimizer=theirs, findings=[])]
    events += [event("update", optimizer=here, findings=[0])] if here is not None else []
    about = claim("optimizer-step-in-automatic", "steps-per-batch")
    assert judged(about, run([line(), *events]))[0] == expected


@pytest.mark.parametrize(
    ("scaler", "again", "expected"),
    [
        ({"scale": 65536.0, "stage": "READY"}, False, "confirmed"),
        ({"scale": 65536.0, "stage": "UNSCALED"}, False, "open"),
        (None, True, "confirmed"),
        (None, False, "open"),
    ],
)
def test_steps_past_the_scaler(scaler: dict[str, Any] | None, again: bool, expected: str) -> None:
    usual = {"optimizer": 0, "held": 4, "norm": 9.0, "scaler": scaler}
    events = [
        event("update", findings=[], backwards=1, **usual),
        event("update", findings=[0], backwards=1 if again else 2, **usual),
    ]
    assert judged(claim("grad-scaler-protocol", "optimizer-steps-per-batch"), run([line(), *events]))[0] == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([line(raised="RuntimeError: no")], "confirmed"),
        (
            [line(), event("backward", findings=[0], through=""), event("backward", findings=[], through="lightning")],
            "confirmed",
        ),
        ([line(), event("backward", findings=[0], through="")], "open"),
        ([line(), event("backward", findings=[], through="lightning")], "not observable"),
    ],
)
def test_a_pass_beside_lightnings(events: list[Event], expected: str) -> None:
    assert judged(claim("backward-in-automatic", "backwards-per-step"), run(events))[0] == expected


@pytest.mark.parametrize(
    ("precision", "scaler", "message", "expected"),
    [
        ("16-mixed", True, "needs `16-mixed`", "confirmed"),
        ("bf16-mixed", False, 'which `precision="16-mixed"` needs', "not observable"),
        ("bf16-mixed", False, 'which `precision="bf16-mixed"` needs', "refuted"),
        ("32-true", False, "goes past Lightning", "refuted"),
    ],
)
def test_a_pass_past_lightning(precision: str, scaler: bool, message: str, expected: str) -> None:
    events = [
        line(),
        event("precision", precision=precision, scaler=scaler, strategy="SingleDeviceStrategy"),
        event("backward", findings=[0], through=""),
    ]
    assert judged(claim("manual-loss-backward", "manual-backwards", message), run(events))[0] == expected


@pytest.mark.parametrize(
    ("name", "ranks", "others", "expected"),
    [
        ("manual-loss-backward", 2, [], "confirmed"),
        ("manual-loss-backward", 2, [event("backward", findings=[], through="lightning")], "open"),
        ("manual-loss-backward", 1, [], "not observable"),
        ("fabric-loss-backward", 2, [], "refuted"),
    ],
)
def test_a_pass_past_lightning_on_several_ranks(name: str, ranks: int, others: list[Event], expected: str) -> None:
    events = [
        line(),
        event("precision", precision="32-true", scaler=False, strategy="DDPStrategy"),
        event("backward", findings=[0], through=""),
        *others,
    ]
    about = claim(name, "manual-backwards", 'which `strategy="ddp"` needs')
    assert judged(about, run(*[events] * ranks))[0] == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([event("step", n=1, closure=0)], "confirmed"),
        ([event("step", n=1, closure=1), event("backward")], "refuted"),
        ([event("step", n=1, closure=1)], "not observable"),
        ([event("step", n=1, closure=None), event("backward")], "not observable"),
        ([event("exception", message="The closure hasn't been executed. HINT")], "confirmed"),
    ],
)
def test_closures(events: list[Event], expected: str) -> None:
    assert judged(claim("optimizer-closure-dropped", "closure-runs"), run(events))[0] == expected


@pytest.mark.parametrize(
    ("name", "counted", "expected"),
    [
        ("manual-raw-optimizer", 0, "confirmed"),
        ("manual-raw-optimizer", 8, "refuted"),
        ("manual-raw-optimizer", 4, "open"),
        ("global-step-multiple-optimizers", 8, "confirmed"),
        ("global-step-multiple-optimizers", 4, "refuted"),
    ],
)
def test_global_step(name: str, counted: int, expected: str) -> None:
    events = [event("step", n=number) for number in range(1, 9)]
    loop = event("loop", epoch=1, batches=4, global_step=counted)
    assert judged(claim(name, "global-step"), run([*events, loop]))[0] == expected
