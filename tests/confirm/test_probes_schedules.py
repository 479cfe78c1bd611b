"""Learning rates of a run: who steps a scheduler, how often, and what the Trainer holds of it."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import claim, event, judged, run

from lightlint.confirm.records import Event


def scheduler(length: int | None = 26, mode: str | None = None) -> Event:
    return event(
        "scheduler", scheduler=0, type="OneCycleLR", optimizer=0, length=length, mode=mode, rates=[0.1], findings=[]
    )


def tick(batches: int = 1, *, time: float = 2.0, findings: list[int] | None = None, **fields: Any) -> Event:
    usual = {"scheduler": 0, "type": "OneCycleLR", "rates": [[0.1], [0.2]], "bad": [None, None], "given": None}
    findings = [0] if findings is None else findings
    return event(
        "scheduler-step", batches=batches, time=time, findings=findings, **{"by_trainer": False, **usual, **fields}
    )


def step(rate: float = 0.1, *, time: float = 1.0) -> Event:
    return event("step", n=1, optimizer=0, rates=[rate], time=time)


def held(*configs: dict[str, Any], batches: int | None = 13) -> Event:
    return event("schedulers", held=list(configs), automatic=True, batches=batches)


CONFIG = {"scheduler": 0, "interval": "epoch", "frequency": 1, "monitor": None}
EPOCH_END = event("metrics", when="on_train_epoch_end", values={}, epoch=0)


def outcome(name: str, *events: Event, message: str = "") -> str:
    return judged(claim(name, "learning-rate-history", message), run(list(events)))[0]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([held(CONFIG), step(), EPOCH_END], "confirmed"),
        ([held(CONFIG), step(), tick(), EPOCH_END], "refuted"),
        ([held(CONFIG), step()], "open"),
        ([held(), EPOCH_END], "not observable"),
    ],
)
def test_never_stepped(events: list[Event], expected: str) -> None:
    assert outcome("manual-scheduler-never-stepped", *events) == expected


@pytest.mark.parametrize(
    ("values", "bad", "expected"),
    [((0.2, 0.3), [0, 1], "confirmed"), ((0.3, 0.2), [0, 0], "open"), ((0.2, 0.3), [0, 0], "open")],
)
def test_a_plateau_that_counts_the_wrong_way(values: tuple[float, float], bad: list[int], expected: str) -> None:
    flat = [[0.1], [0.1]]
    events = [tick(given=value, rates=flat, bad=counts) for value, counts in zip(values, ([0, 0], bad), strict=True)]
    assert outcome("plateau-mode-mismatch", scheduler(None, "min"), *events) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([tick(time=1.0), step(0.2, time=2.0)], "confirmed"),
        ([tick(time=1.0), step(0.1, time=2.0)], "open"),
        ([step(0.1, time=1.0), tick(time=2.0)], "refuted"),
        ([tick(time=1.0)], "open"),
        ([step()], "not observable"),
    ],
)
def test_ahead_of_the_optimizer(events: list[Event], expected: str) -> None:
    assert outcome("scheduler-before-optimizer", scheduler(), *events) == expected


@pytest.mark.parametrize(
    ("message", "gap", "length", "expected"),
    [
        ("steps `A` once an epoch", 13, 26, "confirmed"),
        ("steps `A` once an epoch", 13, 5, "open"),
        ("steps `A` once an epoch", 1, 26, "refuted"),
        ("steps `A` once a batch", 1, 5, "confirmed"),
        ("steps `A` once a batch", 1, 26, "open"),
        ("steps `A` once a batch", 13, 5, "open"),
    ],
)
def test_cadence(message: str, gap: int, length: int, expected: str) -> None:
    events = [event("loader", loader=0, length=13), event("batch", loader=0), scheduler(length)]
    events += [tick(batches=gap * number) for number in range(1, 4)]
    assert outcome("scheduler-wrong-cadence", *events, message=message) == expected


def test_a_scheduler_that_the_trainer_does_not_hold() -> None:
    assert outcome("optimizer-dict-unknown-key", scheduler(), held()) == "confirmed"
    assert outcome("optimizer-dict-unknown-key", scheduler(), held(CONFIG)) == "refuted"
    assert outcome("optimizer-dict-unknown-key") == "not observable"


def test_a_key_of_a_schedulers_dict_that_is_not_read() -> None:
    message = "Lightning ignores `Interval` in a scheduler's dict: the key is `interval`"
    assert outcome("lr-scheduler-dict-unknown-key", held(CONFIG), message=message) == "confirmed"
    assert outcome("lr-scheduler-dict-unknown-key", held(CONFIG), message="ignores `x`") == "open"
    raised = event("exception", type="MisconfigurationException", message='The "interval" key in lr scheduler dict')
    assert outcome("lr-scheduler-dict-unknown-key", raised, message=message) == "confirmed"


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([[0.1, 0.1, 0.1], [0.1, 0.05, 0.05]], "confirmed"),
        ([[0.1, 0.09, 0.08], [0.07, 0.06, 0.05]], "refuted"),
        ([[0.1, 0.1, 0.1], [0.1, 0.1, 0.1]], "open"),
        ([[0.1, 0.1, 0.1]], "not observable"),
    ],
)
def test_rates_within_an_epoch(rates: list[list[float]], expected: str) -> None:
    events: list[Event] = []
    for number, epoch in enumerate(rates):
        events.append(event("epoch", number=number))
        for rate in epoch:
            events += [step(rate), tick()]
    assert outcome("scheduler-step-with-epoch", *events) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([tick(), tick(findings=[], by_trainer=True)], "confirmed"),
        ([tick(), tick(findings=[], by_trainer=True, scheduler=1)], "refuted"),
        ([tick()], "open"),
        ([tick(findings=[], by_trainer=True)], "not observable"),
    ],
)
def test_stepped_twice(events: list[Event], expected: str) -> None:
    assert outcome("scheduler-stepped-twice", *events) == expected


@pytest.mark.parametrize(
    ("interval", "length", "expected"), [("epoch", 26, "confirmed"), ("step", 26, "refuted"), ("epoch", 5, "open")]
)
def test_a_schedule_of_batches_stepped_once_an_epoch(interval: str, length: int, expected: str) -> None:
    config = {**CONFIG, "interval": interval}
    assert outcome("step-scheduler-on-epoch-interval", scheduler(length), held(config)) == expected


@pytest.mark.parametrize(
    ("length", "tier", "outcome"),
    [
        (8, "error", "confirmed"),
        (40, "warning", "confirmed"),
        (2, "error", "open"),
        (None, "error", "confirmed"),
        (None, "warning", "open"),
    ],
)
def test_a_schedule_of_batches_in_a_run_that_is_cut(length: int | None, tier: str, outcome: str) -> None:
    """The Trainer plans 8 batches of 32 in the cut run, and a schedule by its plan is as short."""
    about = claim("step-scheduler-on-epoch-interval", "learning-rate-history", "`OneCycleLR` counts batches", tier=tier)
    held = [{"scheduler": 1, "interval": "epoch", "frequency": 1, "monitor": None}]
    events = [
        event(
            "scheduler", scheduler=1, type="OneCycleLR", optimizer=0, length=length, mode=None, rates=[0.1], findings=[]
        ),
        event("schedulers", held=held, automatic=True, batches=32, in_run=8),
        *(event("step", n=number, rates=[0.1], time=float(number)) for number in range(1, 9)),
        *(event("scheduler-step", scheduler=1, by_trainer=True, time=float(at)) for at in (4, 8)),
    ]
    assert judged(about, run(events))[0] == outcome
