"""What a run itself showed, by hand-written events: who left first, where, and in what the others waited."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from recorded import FILE, at, claim, event, line, run

from lightlint.confirm.judge import judge, unnamed
from lightlint.confirm.observed import observe
from lightlint.confirm.records import Event, Run
from lightlint.confirm.verdict import Outcome

GLOO = "[gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:4808"
CUT, FINISHED = event("end", reason="cut", time=90.0), event("end", reason="finished", time=50.0)


def step(number: int, time: float) -> list[Event]:
    """A forward pass, a backward pass and an update of a DDP model, in rows 20 to 22."""
    return [
        event("batch", loader=0, number=number, digest=f"{time}", time=time, **{"pass": 1}),
        exchange("forward", number - 1, time + 0.1),
        exchange("backward", number - 1, time + 0.2),
        event("step", n=number, step=number, batches=number, time=time + 0.3, places=at(22)),
    ]


def exchange(when: str, step: int, time: float, *, joined: bool = False) -> Event:
    row = 20 if when == "forward" else 21
    return event(
        "exchange",
        when=when,
        model=0,
        wanted=True,
        grad=True,
        buffers=False,
        joined=joined,
        places=at(row),
        step=step,
        time=time,
    )


def steps(count: int, begin: float = 1.0) -> list[Event]:
    return [each for number in range(count) for each in step(number + 1, begin + number)]


def waits(count: int, time: float = 8.0) -> list[Event]:
    """As many steps and the next backward pass, which does not return."""
    return [*steps(count), exchange("forward", count, time), exchange("backward", count, time + 0.1)]


def raised(kind: str, message: str, row: int, time: float, step: int = 3) -> Event:
    return event("exception", type=kind, message=message, frames=at(row), places=at(row), step=step, time=time)


def call(name: str, row: int, *, shape: list[int] | None = None, time: float = 9.0) -> Event:
    return event("collective", name=name, shape=shape, whole=True, places=at(row), time=time, step=3)


def told(found: Run) -> tuple[str, str, tuple[str, ...]]:
    first = observe(found)[0]
    return (
        first.kind,
        first.message.replace(FILE, "train.py"),
        tuple(d.replace(FILE, "train.py") for d in first.details),
    )


WAITED = ("rank 0 waited for it in `backward` at train.py:21 in main, where DDP exchanges gradients",)


@pytest.mark.parametrize("message", [GLOO, "NCCL communicator was aborted on rank 0", "something nobody ever read"])
def test_the_rank_that_raised_first_is_named_whatever_the_other_says(message: str) -> None:
    lost = [*waits(3), raised("RuntimeError", message, 21, 12.0)]
    found = run(lost, [*steps(3), raised("ValueError", "bad sample", 30, 7.5)], ended="raised")
    assert told(found) == (
        "raised",
        "rank 1 raised ValueError at train.py:30 in main, after step 3: bad sample",
        WAITED,
    )


def test_a_rank_that_lost_another_before_that_one_told_why_is_not_the_first() -> None:
    lost = [*waits(3), raised("RuntimeError", GLOO, 21, 7.0)]
    found = run(lost, [*steps(3), raised("ValueError", "bad sample", 30, 7.5)], ended="raised")
    assert told(found)[1] == "rank 1 raised ValueError at train.py:30 in main, after step 3: bad sample"


def test_where_a_loaders_worker_raised() -> None:
    message = (
        "Caught ValueError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        '  File "/env/lib/python3.11/site-packages/torch/utils/data/_utils/fetch.py", line 54, in fetch\n'
        f'  File "{FILE}", line 12, in __getitem__\nValueError: bad sample\n'
    )
    found = run(waits(3), [*steps(3), raised("ValueError", message, 19, 7.5)], ended="raised")
    said = "rank 1 raised ValueError in a worker of its data loader at train.py:12 in __getitem__, after step 3: bad sample"
    assert told(found)[1] == said


@pytest.mark.parametrize("ended", ["raised", "stalled", "timed out"])
def test_a_rank_that_left_its_loop_and_came_to_its_end(ended: str) -> None:
    left = event("pass-left", loader=0, number=1, batches=3, steps=3, step=3, places=at(25), time=7.0)
    found = run(waits(3), [*steps(3), left, FINISHED], ended=ended)
    assert told(found) == ("left", "rank 1 left the loop and ended at train.py:25 in main, after step 3", WAITED)


def test_a_rank_that_ended_is_told_with_where_it_was_seen_last() -> None:
    found = run(waits(3), [*steps(3), FINISHED], ended="stalled")
    assert told(found)[1] == "rank 1 ended, last seen at train.py:22 in main, after step 3"


def test_a_line_that_only_the_rank_that_ended_came_to_is_confirmed() -> None:
    left = claim("rank-dependent-loop-exit", "steps-per-rank", rows=(25, 25))
    here = Event({**line(), "time": 7.0})
    found = run(waits(3), [*steps(3), here, FINISHED], ended="stalled")
    both = run([*waits(3), here], [*steps(3), here, FINISHED], ended="stalled")
    early = run(waits(3), [here, *steps(3, 7.5), FINISHED], ended="raised")
    outcomes = [judge([left], each, observed=observe(each))[0].outcome for each in (found, both, early)]
    assert outcomes == [Outcome.CONFIRMED, Outcome.OPEN, Outcome.OPEN]


def test_our_own_cut_is_no_departure() -> None:
    """Rank 0 has two batches a pass, so that its run is cut where rank 1 waits in its second pass."""
    through = event("pass-end", loader=0, number=1, batches=2, cut=False, step=2, time=3.5)
    cut = event("pass-end", loader=0, number=1, batches=4, cut=True, step=4, time=5.5)
    lost = raised("RuntimeError", GLOO, 21, 12.0)
    short = [loader(2), *steps(2), through, CUT]
    found = run(short, [loader(4), *steps(4, 1.5), cut, lost], ended="raised")
    assert told(found)[:2] == ("unequal batches", "rank 0 had no more batches after step 2, where rank 1 drew 2 more")


def test_a_rank_that_called_its_end() -> None:
    called = event("exit", name="os._exit", code="3", places=at(27), step=3, time=7.0)
    found = run(waits(3), [*steps(3), called], ended="raised")
    assert told(found) == (
        "exited",
        "rank 1 called `os._exit` with status 3 at train.py:27 in main, after step 3",
        WAITED,
    )


def test_a_rank_that_was_killed() -> None:
    found = replace(run(waits(3), steps(3), ended="raised"), gone={"-1": (7.0, 9), "-0": (7.2, 15)})
    kind, message, details = told(found)
    assert (kind, details) == ("killed", WAITED)
    assert message.startswith("rank 1 was killed by SIGKILL")
    assert message.endswith("last seen at train.py:22 in main, after step 3")


def test_a_killed_rank_whose_parent_was_quicker_is_known_from_torchrun() -> None:
    agent = [event("exception", type="ChildFailedError", message="exitcode  : -9 (pid: 1)", frames=[], time=9.0)]
    found = replace(run(waits(3), steps(3), ended="raised", others=(agent,)), gone={"-1": (7.0, None)})
    assert told(found)[0] == "killed"


def test_a_rank_that_stands_still_is_behind_the_others() -> None:
    found = replace(run(waits(3), steps(3), ended="stalled"), standing={"-0": at(40), "-1": at(28, "wait")})
    assert told(found) == ("stood still", "rank 1 stood still at train.py:28 in wait, after step 3", WAITED)


def test_under_nccl_the_others_go_on_until_they_need_a_result() -> None:
    found = replace(run([*waits(4), CUT], steps(3), ended="stalled"), standing={"-1": at(28)})
    assert told(found) == ("stood still", "rank 1 stood still at train.py:28 in main, after step 3", WAITED)


def test_a_run_that_stands_still_for_what_nobody_sees_says_where() -> None:
    found = replace(run(steps(3), steps(3), ended="stalled"), standing={"-0": at(40), "-1": at(41)})
    kind, message, details = told(found)
    assert (kind, message) == ("stood still", "the run stood still, after step 3")
    assert details == ("rank 0 stood at train.py:40 in main", "rank 1 stood at train.py:41 in main")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (call("barrier", 30), exchange("backward", 3, 9.0)),
        (call("all_reduce", 30, shape=[2]), call("all_reduce", 31, shape=[3])),
        (call("all_gather", 30), call("broadcast", 31)),
    ],
)
@pytest.mark.parametrize("ended", ["stalled", "raised", "finished"])
def test_ranks_that_call_different_collectives(one: Event, other: Event, ended: str) -> None:
    before = [*steps(3), exchange("forward", 3, 8.5)]
    kind, message, _ = told(run([*before, one], [*before, other], ended=ended))
    assert kind == "parted"
    assert message.startswith("the ranks called different collectives after step 3: rank 0 called `")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (call("all_to_all_single", 30, shape=[2]), call("all_to_all_single", 31, shape=[3])),
        (call("broadcast", 30, shape=[2]), call("broadcast", 31, shape=[2])),
    ],
)
def test_collectives_that_go_together(one: Event, other: Event) -> None:
    assert observe(run([*steps(3), one, CUT], [*steps(3, 1.5), other, CUT])) == ()


def test_nothing_is_told_of_ranks_that_kept_step() -> None:
    assert observe(run([*steps(3), CUT], [*steps(3, 5.0), CUT], ended="cut")) == ()


def test_ranks_that_join_may_have_unequal_batches() -> None:
    joined = [*steps(2), exchange("forward", 2, 8.0, joined=True), exchange("backward", 2, 8.1, joined=True)]
    assert observe(run([*joined, FINISHED], [*steps(2, 1.5), FINISHED])) == ()


def over(end: str, batches: int, row: int = 25) -> Event:
    if end == "left":
        return event("pass-left", loader=0, number=1, batches=batches, steps=4, step=4, places=at(row), time=8.0)
    return event("pass-end", loader=0, number=1, batches=batches, cut=end == "cut", step=4, time=8.0)


def loader(length: int | None) -> Event:
    return event("loader", loader=0, length=length, places=at(15), time=0.5)


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ((8, "cut"), (8, "left"), "loop left"),
        ((None, "cut"), (None, "left"), "loop left"),
        ((8, "cut"), (4, "through"), "unequal batches"),
        ((9, "cut"), (8, "cut"), "unequal batches"),
        ((8, "cut"), (8, "cut"), None),
        ((8, "left"), (8, "left"), None),
        ((4, "cut"), (4, "left"), None),
        ((4, "through"), (8, "left"), None),
    ],
)
def test_loops_that_some_ranks_leave_where_others_are_cut(
    one: tuple[int | None, str], other: tuple[int | None, str], kind: str | None
) -> None:
    ranks = [[loader(length), *steps(4), over(end, 4), CUT] for length, end in (one, other)]
    for rank, events in enumerate(ranks):
        for each in events:
            if each.kind == "batch":
                each["digest"] = f"{rank}-{each['number']}"
    assert [each.kind for each in observe(run(*ranks, ended="cut"))] == ([kind] if kind else [])


def test_a_finding_on_the_line_where_a_rank_left_is_confirmed() -> None:
    ranks = [[loader(8), *steps(4), over(end, 4), CUT] for end in ("cut", "left")]
    found = run(*ranks, ended="cut")
    here = claim("rank-dependent-loop-exit", "steps-per-rank", rows=(25, 25))
    there = claim("rank-dependent-loop-exit", "steps-per-rank", rows=(26, 26))
    other = claim("loader-without-workers", "none", rows=(25, 25))
    verdicts = judge([here, there, other], found, observed=observe(found))
    assert [each.outcome for each in verdicts] == [Outcome.CONFIRMED, Outcome.OPEN, Outcome.NOT_CHECKED]


def test_equal_batches_are_told_where_no_finding_names_them() -> None:
    ranks = [[loader(8), *steps(4), over("cut", 4), CUT] for _ in range(2)]
    found = run(*ranks, ended="cut")
    (same,) = observe(found)
    assert same.kind == "same samples"
    assert same.message == "ranks 0 and 1 trained on the same samples: 4 of 4 batches are equal"
    for rank, events in enumerate(ranks):  # each takes its own part of the batches
        for each in events:
            each.update({"inputs": f"part {rank}"} if each.kind == "exchange" else {})
    assert observe(run(*ranks, ended="cut")) == ()
    named = claim("loader-without-distributed-sampler", "sample-overlap", rows=(15, 15))
    assert unnamed([same], [named], judge([named], found, observed=[same])) == ()
    assert unnamed([same], [], []) == (same,)


def test_the_loader_that_is_evaluated_on_may_give_all_ranks_the_same() -> None:
    held = [event("batch", loader=1, number=n, digest=f"{n}", time=20.0 + n, **{"pass": 1}) for n in range(1, 9)]
    ranks = [[loader(8), *steps(4, begin), *held, CUT] for begin in (1.0, 1.5)]
    assert observe(run(*ranks, ended="cut")) == ()


def writing(path: str, time: float, **fields: Any) -> Event:
    return event("write", **{"path": path, "what": "file", "mode": "w", "places": at(33), "time": time, **fields})


def test_a_file_that_ranks_write_at_the_same_time() -> None:
    found = run([*steps(3), writing("/p/best.pt", 9.0), CUT], [*steps(3), writing("/p/best.pt", 9.5), CUT], ended="cut")
    (one, *_) = [each for each in observe(found) if each.kind == "one file"]
    assert one.message.replace(FILE, "train.py") == "ranks 0 and 1 wrote the same file, best.pt at train.py:33 in main"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([writing("/p/a", 9.0)], [writing("/p/b", 9.0)]),
        ([writing("/p/a", 9.0, what="directory")], [writing("/p/a", 9.0, what="directory")]),
        ([writing("/p/__pycache__/a.pyc", 9.0)], [writing("/p/__pycache__/a.pyc", 9.0)]),
        ([writing("/p/log", 8.0), call("barrier", 34)], [call("barrier", 34), writing("/p/log", 9.5)]),
    ],
)
def test_files_that_are_no_fault(one: list[Event], other: list[Event]) -> None:
    found = run([*steps(3), *one, CUT], [*steps(3), *other, CUT], ended="cut")
    assert [each for each in observe(found) if each.kind == "one file"] == []
