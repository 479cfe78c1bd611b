"""Generators that workers got copies of."""

from __future__ import annotations

from typing import Any

from recorded import FILE, claim, event, judged, run

from lightlint.confirm.records import Event

SHARED = claim("dataset-rng-shared-by-workers", "first-draws-per-worker", "a copy of this `Generator`", tier="warning")
CONSTANT = claim("worker-init-constant-seed", "first-draws-per-worker", "seeds `numpy` with the same number")


def worker(number: int, begin: str, end: str, *, group: str = "1", **fields: Any) -> list[Event]:
    given = {"group": group, "worker": number, "initialised": True, "source": [FILE, 5, 30], **fields}
    return [
        event("worker", when=when, generators={"dataset.rng": state}, states={"numpy": state, "torch": "t"}, **given)
        for when, state in (("begin", begin), ("end", end))
    ]


def test_workers_in_one_state_that_draw_are_confirmed() -> None:
    found = run([], others=(worker(0, "a", "b"), worker(1, "a", "c")))
    assert judged(SHARED, found)[0] == judged(CONSTANT, found)[0] == "confirmed"


def test_workers_in_states_of_their_own_are_refuted() -> None:
    found = run([], others=(worker(0, "a", "b"), worker(1, "x", "y")))
    assert judged(SHARED, found)[0] == judged(CONSTANT, found)[0] == "refuted"


def test_a_generator_that_nobody_draws_from_is_left_open() -> None:
    assert judged(SHARED, run([], others=(worker(0, "a", "a"), worker(1, "a", "a"))))[0] == "open"


def test_workers_of_two_passes_are_not_compared() -> None:
    found = run([], others=(worker(0, "a", "b"), worker(0, "a", "b", group="2")))
    assert judged(SHARED, found)[0] == "not observable"


def test_another_data_set_refutes_nothing() -> None:
    others = (worker(0, "a", "b", source=["/other.py", 1, 9]), worker(1, "x", "y", source=["/other.py", 1, 9]))
    assert judged(SHARED, run([], others=others))[0] == "open"


def test_loaders_without_an_init_function_do_not_count_for_its_seed() -> None:
    plain = (worker(0, "a", "b", initialised=False), worker(1, "x", "y", initialised=False))
    seeded = (worker(0, "a", "b", group="2"), worker(1, "a", "b", group="2"))
    assert judged(CONSTANT, run([], others=(*plain, *seeded)))[0] == "confirmed"
