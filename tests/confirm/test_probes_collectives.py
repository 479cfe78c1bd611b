"""Collectives that only some ranks call, and exchanges of gradients."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import at, claim, event, judged, line, run

from lightlint.confirm.records import Event

GUARDED = claim("collective-in-rank-guard", "collectives-per-rank", "only some ranks call `all_reduce`")
OUTSIDE = claim("forward-outside-no-sync", "syncs-per-step", "`model` ran forward before this", tier="warning")
NEVER = claim("gradients-never-exchanged", "syncs-per-step", "`model` never runs outside of `no_sync`")
ALONE = claim("ddp-forward-on-one-rank", "forwards-per-rank", "`evaluate` runs a DDP model on some ranks only")


def call(name: str, row: int = 50, *, time: float = 5.0, shape: list[int] | None = None) -> Event:
    return event("collective", name=name, shape=shape, whole=True, places=at(row), items=0, distinct=0, time=time)


END = event("end", reason="finished", time=9.0)


def test_a_call_that_one_rank_leaves_out_is_confirmed() -> None:
    found = run([call("barrier"), call("all_reduce", 10, shape=[3]), END], [call("barrier"), END])
    said = "collective 2 is `all_reduce` of shape [3] on rank 0, where rank 1 calls none"
    assert judged(GUARDED, found) == ("confirmed", said)


def test_a_rank_that_does_other_things_meanwhile_did_not_call_it() -> None:
    found = run([call("all_reduce", 10)], [event("batch", time=6.0)], ended="raised")
    assert judged(GUARDED, found)[0] == "confirmed"


def test_a_rank_that_ended_before_could_not_call_it() -> None:
    found = run([call("all_reduce", 10)], [event("batch", time=4.0)], ended="raised")
    assert judged(GUARDED, found)[0] == "open"


def test_calls_of_all_ranks_are_refuted() -> None:
    rank = [call("all_reduce", 10), END]
    assert judged(GUARDED, run(rank, rank))[0] == "refuted"


def test_ranks_that_part_elsewhere_leave_it_open() -> None:
    found = run([line(), call("barrier", 70), END], [line(), END])
    assert judged(GUARDED, found)[0] == "open"


def test_a_log_is_reduced_behind_the_line_that_only_one_rank_ran() -> None:
    found = run([line(), call("all_reduce", 90), END], [call("barrier", 90), END])
    assert judged(GUARDED, found)[0] == "confirmed"


def exchange(when: str, wanted: bool, *, grad: bool = True, buffers: bool = False, row: int = 10) -> Event:
    return event("exchange", when=when, model=0, wanted=wanted, grad=grad, buffers=buffers, places=at(row))


def test_a_backward_pass_inside_no_sync_behind_a_forward_pass_outside() -> None:
    late = [line(), exchange("forward", True), exchange("backward", False)]
    early = [line(), exchange("forward", False), exchange("backward", False)]
    assert judged(OUTSIDE, run(late, late))[0] == "confirmed"
    assert judged(OUTSIDE, run(early, early))[0] == "refuted"
    assert judged(OUTSIDE, run([line()], [line()]))[0] == "open"


def test_no_forward_pass_outside_of_no_sync() -> None:
    step = event("step", n=2, batches=2)
    never = [line(), exchange("forward", False), exchange("forward", False), step]
    once = [line(), exchange("forward", False), exchange("forward", True), step]
    assert judged(NEVER, run(never, never))[0] == "confirmed"
    assert judged(NEVER, run(once, once))[0] == "refuted"


@pytest.mark.parametrize(
    ("one", "other", "outcome"),
    [
        ({"buffers": True}, None, "confirmed"),
        ({"grad": False}, None, "refuted"),
        ({"grad": True}, None, "open"),
        ({"buffers": True}, {"buffers": True}, "refuted"),
    ],
)
def test_forward_passes_of_one_rank(one: dict[str, Any], other: dict[str, Any] | None, outcome: str) -> None:
    ranks = [[exchange("forward", True, **each)] if each is not None else [] for each in (one, other)]
    assert judged(ALONE, run(*ranks))[0] == outcome
