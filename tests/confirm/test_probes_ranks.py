"""What differs from rank to rank."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from recorded import at, claim, event, judged, line, run

from lightlint.confirm.records import Event

FORWARD = claim("rank-dependent-forward", "loss-per-rank", "`x` is not the same on all ranks", tier="warning")
EXIT = claim("rank-dependent-loop-exit", "steps-per-rank", "only some ranks leave the loop here")
LOGGED = claim("epoch-log-without-sync-dist", "callback-metrics-per-rank", "`val` is monitored", tier="note")
PREPARED = claim("prepare-data-assigns-state", "attributes-per-rank", "`self.count` is set by one process")
GATHER = claim("aliased-gather-list", "shared-storage", "one tensor in every place of the list")
PARTS = claim("subsets-share-transform", "same-dataset", "`val.dataset` is the data set of `train` too")


def losses(graph: str, rise: float = 0.0, count: int = 3) -> list[Event]:
    return [event("loss", value=0.5, graph=graph, rise={"process": rise}, anomaly=False) for _ in range(count)]


def test_other_operations_are_confirmed() -> None:
    found = run([line(), *losses("a")], [line(), *losses("b")])
    assert judged(FORWARD, found)[0] == "confirmed"


def test_other_branches_are_confirmed_with_their_memory() -> None:
    found = run([line(then=11), *losses("a", 64.0)], [line(then=13), *losses("a")])
    outcome, reason = judged(FORWARD, found)
    assert (outcome, "64 MiB" in reason) == ("confirmed", True)
    assert judged(FORWARD, run([line(then=11), *losses("a")], [line(then=13), *losses("a")]))[0] == "confirmed"


def test_one_branch_and_one_graph_prove_nothing() -> None:
    rank = [line(then=12), *losses("a")]
    assert judged(FORWARD, run(rank, rank))[0] == "open"
    assert judged(FORWARD, run([line()], [line()]))[0] == "open"


def test_a_graph_that_differs_now_and_then_is_not_the_ranks() -> None:
    found = run([line(), *losses("a", count=2)], [line(), *losses("a", count=1), *losses("b", count=1)])
    assert judged(FORWARD, found)[0] == "open"


def steps(*batches: int) -> list[Event]:
    """A step behind each of these numbers of batches."""
    drawn = [event("batch", loader=0) for _ in range(max(batches))]
    events: list[Event] = []
    for number, (before, each) in enumerate(pairwise((0, *batches)), start=1):
        events += [*drawn[before:each], event("step", n=number)]
    return events


END = event("end", reason="finished")


def test_batches_at_the_same_step() -> None:
    assert judged(EXIT, run([*steps(1, 2, 4), END], [*steps(1, 2, 3), END]))[0] == "confirmed"
    assert judged(EXIT, run([*steps(1, 2), END], [*steps(1, 2, 3), END]))[0] == "confirmed"
    assert judged(EXIT, run([*steps(1, 2)], [*steps(1, 2, 3)], ended="raised"))[0] == "open"
    assert judged(EXIT, run([*steps(1, 2), END], [*steps(1, 2), END]))[0] == "open"


def test_a_rank_that_evaluates_alone_keeps_step() -> None:
    evaluated = [event("batch", loader=1), event("batch", loader=1)]
    assert judged(EXIT, run([*steps(1), *evaluated, *steps(1), END], [*steps(1), *steps(1), END]))[0] == "open"


def test_a_stall_behind_a_line_of_one_rank() -> None:
    assert judged(EXIT, run([line(), *steps(1)], steps(1), ended="stalled"))[0] == "confirmed"
    assert judged(EXIT, run([line(), *steps(1)], [line(), *steps(1)], ended="stalled"))[0] == "open"


def metrics(value: float | None, epoch: int = 0) -> Event:
    return event("metrics", when="on_validation_end", epoch=epoch, values={} if value is None else {"val": value})


@pytest.mark.parametrize(
    ("one", "other", "outcome"),
    [
        ((0.1,), (0.2,), "confirmed"),
        ((0.1,), (None,), "confirmed"),
        ((0.1, 0.3), (0.1, 0.3), "refuted"),
        ((0.0, 0.0), (0.0, 0.0), "open"),
        ((None,), (None,), "open"),
    ],
)
def test_metrics_of_the_ranks(one: Any, other: Any, outcome: str) -> None:
    ranks = [[metrics(each, epoch) for epoch, each in enumerate(values)] for values in (one, other)]
    assert judged(LOGGED, run(*ranks))[0] == outcome


def test_attributes_that_one_rank_lacks() -> None:
    have, lack = event("attributes", data_module=["count"], module=[]), event("attributes", data_module=[], module=[])
    error = event("exception", type="AttributeError", message="'Data' object has no attribute 'count'", frames=[])
    assert judged(PREPARED, run([line(), have], [lack]))[0] == "confirmed"
    assert judged(PREPARED, run([line()], [error], ended="raised"))[0] == "confirmed"
    assert judged(PREPARED, run([line(), have], [have]))[0] == "open"
    assert judged(PREPARED, run([line(), have], [line(), have]))[0] == "refuted"


def gathered(items: int, distinct: int) -> Event:
    return event("collective", name="all_gather", items=items, distinct=distinct, places=at(10), whole=True)


def test_places_of_a_list() -> None:
    assert judged(GATHER, run([line(aliases={"g": [None, [4, 1]]})]))[0] == "confirmed"
    assert judged(GATHER, run([line(aliases={"g": [None, [4, 4]]})]))[0] == "refuted"
    assert judged(GATHER, run([line(aliases={"old": [[4, 4], [4, 4]]})]))[0] == "open"
    assert judged(GATHER, run([line(), gathered(2, 1)], [line()]))[0] == "confirmed"


def test_parts_of_a_data_set() -> None:
    assert judged(PARTS, run([line(datasets={"train": [1, 1], "val": [1, 1]})]))[0] == "confirmed"
    assert judged(PARTS, run([line(datasets={"train": [1, 1], "val": [2, 2]})]))[0] == "refuted"
    assert judged(PARTS, run([line(datasets={"val": [2, 2]})]))[0] == "open"
