"""What was drawn, when and in which order."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import at, claim, event, judged, line, run

from lightlint.confirm.records import Event

OVERLAP = claim("loader-without-distributed-sampler", "sample-overlap", "no `DistributedSampler` in this loader")
HASH = claim("unseeded-data-per-rank", "dataset-hash-per-rank", "`torch.randn` makes another data set", tier="warning")
WAIT = claim("loader-without-workers", "data-wait", "this loader makes each batch in the process", tier="note")
ORDER = claim("missing-set-epoch", "order-per-epoch", "`set_epoch` is never called", rows=(3, 3))
SEED = claim("seed-in-loop", "random-state-repeats", "each epoch draws the same random numbers")
NEXT = claim("next-iter-in-loop", "batches-per-epoch", "each step starts `loader` anew")
STREAM = claim("iterable-dataset-unsharded", "sample-overlap", "each of the 2 workers yields every sample of `S`")


def loader(number: int = 0, row: int = 10, **fields: Any) -> Event:
    given = {"workers": 0, "sampler": "RandomSampler", "shuffle": True, "iterable": False, **fields}
    return event("loader", loader=number, places=at(row), **given)


def batches(*digests: str, number: int = 0, pass_: int = 1, wait: float = 0.0, step: float = 1.0) -> list[Event]:
    return [
        event(
            "batch",
            loader=number,
            number=place,
            digest=digest,
            wait=wait,
            told=0.0,
            time=100 * pass_ + place * step,
            **{"pass": pass_},
        )
        for place, digest in enumerate(digests, start=1)
    ]


def drawn(indices: list[int] | None, *digests: str, number: int = 0, row: int = 10) -> list[Event]:
    return [
        loader(number, row),
        event("pass", loader=number, number=1, indices=indices, places=at(50)),
        *batches(*digests, number=number),
    ]


def test_ranks_that_draw_the_same_samples_are_confirmed() -> None:
    rank = drawn([0, 1, 2, 3], "a", "b")
    assert judged(OVERLAP, run(rank, rank))[0] == "confirmed"


def test_another_order_of_the_same_samples_is_confirmed_too() -> None:
    assert judged(OVERLAP, run(drawn([0, 1, 2, 3], "a"), drawn([3, 2, 1, 0], "b")))[0] == "confirmed"


def test_a_share_for_each_rank_is_refuted() -> None:
    assert judged(OVERLAP, run(drawn([0, 2], "a"), drawn([1, 3], "b")))[0] == "refuted"


def test_another_loader_tells_nothing() -> None:
    rank = drawn([0, 1], "a", row=77)
    assert judged(OVERLAP, run(rank, rank))[0] == "not observable"


@pytest.mark.parametrize(
    ("digests", "outcome"), [("aabb", "confirmed"), ("abcd", "refuted"), ("aaaa", "open"), ("abba", "open")]
)
def test_workers_of_iterable_data(digests: str, outcome: str) -> None:
    found = run([loader(workers=2, iterable=True, shuffle=False), *batches(*digests)])
    assert judged(STREAM, found)[0] == outcome


def test_other_values_on_each_rank_are_confirmed() -> None:
    first, second = line(values={"x": [None, "a"]}, rng={}), line(values={"x": [None, "b"]}, rng={})
    assert judged(HASH, run([first], [second])) == ("confirmed", "the ranks hold different data in `x`")
    assert judged(HASH, run([first], [first]))[0] == "refuted"


@pytest.mark.parametrize(("states", "outcome"), [("ab", "confirmed"), ("aa", "refuted")])
def test_values_that_no_variable_holds_are_judged_by_the_generators(states: str, outcome: str) -> None:
    ranks = [[line(values={}, rng={"torch": [state, "z"], "numpy": ["n", "n"]})] for state in states]
    assert judged(HASH, run(*ranks))[0] == outcome


def test_a_line_that_draws_nothing_is_not_judged() -> None:
    rank = [line(values={}, rng={"torch": ["a", "a"]})]
    assert judged(HASH, run(rank, rank))[0] == "not observable"


@pytest.mark.parametrize(("wait", "outcome"), [(0.6, "confirmed"), (0.1, "refuted")])
def test_waiting_is_a_share_of_the_step(wait: float, outcome: str) -> None:
    found = run([loader(), event("step", n=1, batches=1), line(), *batches(*"abcdefgh", wait=wait)])
    assert judged(WAIT, found)[0] == outcome


def test_the_first_batches_are_left_out() -> None:
    slow = batches(*"abc", wait=0.9)
    found = run([loader(), event("step", n=1), *slow, *batches(*"abcdefgh", wait=0.1, pass_=2)])
    assert judged(WAIT, found)[0] == "refuted"
    assert judged(WAIT, run([loader(), event("step", n=1), *slow]))[0] == "open"


def orders(*passes: list[int], number: int = 0, **fields: Any) -> list[Event]:
    told = [event("pass", loader=number, number=n, indices=each, places=[]) for n, each in enumerate(passes, start=1)]
    return [loader(number, row=4, **{"sampler": "DistributedSampler", **fields}), *told]


def test_epochs_in_one_shuffled_order() -> None:
    same, other = [4, 2, 0, 1, 3], [0, 3, 4, 2, 1]
    assert judged(ORDER, run([line(), *orders(same, same)]))[0] == "confirmed"
    assert judged(ORDER, run([line(), *orders(same, other)]))[0] == "refuted"
    assert judged(ORDER, run([line(), *orders(same, same, shuffle=False)]))[0] == "open"
    assert judged(ORDER, run([line(), *orders(same, same), *orders(same, other, number=1)]))[0] == "open"
    assert judged(ORDER, run([line(), *orders(same)]))[0] == "open"


def test_a_seed_that_puts_a_generator_back() -> None:
    back = [line(rng={"torch": ["a", "s"]}), line(rng={"torch": ["b", "s"]})]
    anew = [line(rng={"torch": ["a", "s"]}), line(rng={"torch": ["b", "t"]})]
    assert judged(SEED, run(back))[0] == "confirmed"
    assert judged(SEED, run(anew))[0] == "refuted"
    assert judged(SEED, run(back[:1]))[0] == "open"


def starts(*counts: int) -> list[Event]:
    found = [event("step", n=2)]
    for number, count in enumerate(counts, start=1):
        found.append(event("pass", loader=0, number=number, indices=None, places=at(10)))
        found += batches(*"abcdef"[:count], pass_=number)
    return found


@pytest.mark.parametrize(("counts", "outcome"), [((1, 1, 1), "confirmed"), ((1, 3), "refuted"), ((1,), "open")])
def test_starts_of_a_loader_for_one_batch(counts: tuple[int, ...], outcome: str) -> None:
    assert judged(NEXT, run([line(), *starts(*counts)]))[0] == outcome
