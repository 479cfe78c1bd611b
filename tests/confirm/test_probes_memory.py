"""Memory on GPUs, gradients that stay, step times, waits for a GPU."""

from __future__ import annotations

import pytest
from recorded import at, claim, event, judged, line, run

from lightlint.confirm.meters.process.driver import of_process
from lightlint.confirm.records import Event

MOVED = claim("model-moved-before-fit", "memory-per-rank-and-gpu", "`cuda()` before `Trainer.fit`", tier="warning")
DEVICE = claim("missing-set-device", "device-per-rank", "no rank is given a device of its own")
ZERO = claim("gradients-zeroed-in-place", "memory-after-zero-grad", "zeros stay", tier="note")
EMPTY = claim("empty-cache-in-loop", "step-time-without", "`empty_cache()` in each batch", tier="warning")
COPY = claim("tensor-made-on-cpu", "line-time", "`ones` is made on the CPU", tier="warning")
WAIT = claim("sync-in-batch-loop", "host-syncs", "`loss.item()` waits in each batch", tier="note")
ANOMALY = claim("anomaly-mode-left-on", "anomaly-mode", "anomaly detection is on", tier="warning")


def moved(gpu: int, mib: float | None) -> Event:
    return line(memory={f"cuda:{gpu}": [None, mib], f"cuda:{gpu} peak": [None, mib], "process": [10.0, 12.0]})


def start(gpu: int) -> Event:
    return event("trainer-start", device=f"cuda:{gpu}", world=2)


def test_a_model_on_another_ranks_gpu_is_confirmed() -> None:
    said = "rank 1, whose device is cuda:1, took 2048 MiB on cuda:0 here"
    assert judged(MOVED, run([moved(0, 2048.0), start(0)], [moved(0, 2048.0), start(1)])) == ("confirmed", said)


def test_a_context_on_another_ranks_gpu_is_told_with_what_the_driver_says() -> None:
    touched = line(memory={"cuda:0": [None, 0.0], "cuda:0 by the driver": [None, 526.0], "cuda:0 peak": [None, 0.0]})
    said = "rank 1, whose device is cuda:1, made a CUDA context of 526 MiB on cuda:0 here"
    assert judged(MOVED, run([touched, start(0)], [touched, start(1)])) == ("confirmed", said)
    unlisted = line(memory={"cuda:0": [None, 0.0], "cuda:0 by the driver": [None, None]})
    said = "rank 1, whose device is cuda:1, made a CUDA context on cuda:0 here"
    assert judged(MOVED, run([unlisted, start(0)], [unlisted, start(1)])) == ("confirmed", said)


UUID = "830fa9ab-240e-849a-d1bc-554a4dd9c5f3"


@pytest.mark.parametrize(
    ("listed", "held"),
    [
        (f"494, GPU-{UUID}, 612\n", 612.0),
        (f"493, GPU-{UUID}, 1024\n494, GPU-{UUID}, 612\n", 612.0),
        (f"494, GPU-{UUID}, [N/A]\n", None),
        ("494, GPU-00000000-0000-0000-0000-000000000000, 612\n", None),
        ("", None),
    ],
)
def test_what_nvidia_smi_lists_of_a_process(listed: str, held: float | None) -> None:
    assert of_process(listed, 494, UUID) == held


def test_the_device_that_the_trainer_uses_is_refuted() -> None:
    assert judged(MOVED, run([moved(0, 3.0), start(0)]))[0] == "refuted"
    assert judged(MOVED, run([moved(0, 3.0), start(0)], [moved(1, 3.0), start(1)]))[0] == "refuted"


def test_no_gpu_shows_nothing() -> None:
    assert judged(MOVED, run([line(memory={"process": [10.0, 12.0]}), start(0)]))[0] == "not observable"
    assert judged(MOVED, run([moved(0, 3.0)]))[0] == "open"


def test_a_fork_behind_the_move_is_confirmed_by_its_error() -> None:
    message = "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, use 'spawn'"
    error = event("exception", type="RuntimeError", message=message, frames=[])
    assert judged(MOVED, run([moved(0, 3.0), error], ended="raised"))[0] == "confirmed"


@pytest.mark.parametrize(
    ("devices", "outcome"),
    [(("cuda:0", "cuda:0"), "confirmed"), (("cuda:0", "cuda:1"), "refuted"), (("cpu", "cpu"), "not observable")],
)
def test_ranks_on_one_gpu(devices: tuple[str, ...], outcome: str) -> None:
    assert judged(DEVICE, run(*[[line(memory={}), event("loss", device=each)] for each in devices]))[0] == outcome


@pytest.mark.parametrize(("behind", "outcome"), [(4.0, "confirmed"), (0.0, "refuted")])
def test_gradients_behind_the_call(behind: float, outcome: str) -> None:
    assert judged(ZERO, run([line(memory={"gradients": [4.0, behind]})]))[0] == outcome


def test_gradients_that_never_were_tell_nothing() -> None:
    assert judged(ZERO, run([line(memory={"gradients": [0.0, 0.0]})]))[0] == "open"


def calls(with_call: float, without: float, count: int = 12) -> list[Event]:
    return [
        event(
            "timed-call",
            number=number,
            skipped=number % 2 == 0,
            behind_skipped=number % 2 == 1 and number > 1,
            seconds=0.001,
            since=None if number == 1 else (without if number % 2 else with_call),
            peak={"cuda:0": 5.0, "process": 99.0},
            places=at(10),
        )
        for number in range(1, count + 1)
    ]


def test_steps_with_a_call_and_without_it() -> None:
    assert judged(EMPTY, run([line(), *calls(0.076, 0.040)])) == (
        "confirmed",
        "steps take 1.9 times as long with the call as without it",
    )
    assert judged(EMPTY, run([line(), *calls(0.040, 0.040)]))[0] == "refuted"
    assert judged(EMPTY, run([line(), *calls(0.076, 0.040, count=5)]))[0] == "open"
    assert judged(EMPTY, run([line()]))[0] == "not observable"


def test_a_line_against_its_step() -> None:
    steps = [event("step", n=number, time=float(number)) for number in range(8)]
    on_gpu = {"cuda:0": [1.0, 1.0]}
    slow = [line(memory=on_gpu) | {"seconds": 0.05} for _ in range(6)]
    fast = [line(memory=on_gpu) | {"seconds": 0.0001} for _ in range(6)]
    assert judged(COPY, run([*steps, *map(Event, slow)]))[0] == "confirmed"
    assert judged(COPY, run([*steps, *map(Event, fast)]))[0] == "refuted"
    assert judged(COPY, run([*steps, line(memory={})]))[0] == "not observable"


def test_a_line_that_waits_for_the_gpu() -> None:
    steps = [event("step", n=number, time=float(number)) for number in range(8)]
    waiting = [Event(line(syncs={"waits": [number, number + 1]}) | {"seconds": 0.25}) for number in range(6)]
    never = [line(syncs={"waits": [4, 4]}) for _ in range(6)]
    said = "the line waits for 25.0% of a step, and without it at most 25.0% of a step could be saved"
    assert judged(WAIT, run([*steps, *waiting])) == ("confirmed", said)
    all_but_1_percent = [Event(each | {"seconds": 0.99}) for each in waiting]
    assert judged(WAIT, run([*steps, *all_but_1_percent]))[0] == "refuted"
    assert judged(WAIT, run(waiting[:2]))[0] == "open"
    assert judged(WAIT, run([*steps, *never]))[0] == "refuted"
    assert judged(WAIT, run([*steps, line(syncs={"waits": [None, None]})]))[0] == "not observable"


@pytest.mark.parametrize(
    ("on", "outcome"), [((True, True), "confirmed"), ((False, False), "refuted"), ((True, False), "open")]
)
def test_anomaly_detection(on: tuple[bool, ...], outcome: str) -> None:
    assert judged(ANOMALY, run([line(), *(event("loss", anomaly=each) for each in on)]))[0] == outcome
