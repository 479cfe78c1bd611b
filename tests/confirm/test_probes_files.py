"""Who wrote which path."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import at, claim, event, judged, line, run

from lightlint.confirm.records import Event

WRITES = claim("file-write-on-every-rank", "writers-per-path", "`open` writes one file from every rank")
LOCK = claim("thread-lock-across-processes", "writers-per-path", "`threading.Lock` holds back threads", rows=(3, 3))


def write(path: str, row: int = 10, **fields: Any) -> Event:
    return event("write", **{"path": path, "what": "file", "mode": "a", "places": at(row), "locked": False, **fields})


def test_one_path_of_two_ranks_is_confirmed_with_its_repeated_lines() -> None:
    ended = event("written", path="/p/a.log", lines=4, distinct=2)
    found = run([line(), write("/p/a.log")], [line(), write("/p/a.log"), ended])
    assert judged(WRITES, found) == ("confirmed", "ranks 0 and 1 wrote the same file from this line: a.log")


def test_a_path_of_each_rank_is_refuted() -> None:
    assert judged(WRITES, run([write("/p/a.0")], [write("/p/a.1")]))[0] == "refuted"


def test_a_guarded_write_is_refuted_unless_the_run_broke_off() -> None:
    assert judged(WRITES, run([write("/p/a.log")], []))[0] == "refuted"
    assert judged(WRITES, run([write("/p/a.log")], [], ended="raised"))[0] == "open"


def test_writes_of_other_lines_tell_nothing() -> None:
    other = [write("/p/a.log", row=40)]
    assert judged(WRITES, run(other, other))[0] == "not observable"


def test_one_rank_shows_nothing() -> None:
    assert judged(WRITES, run([write("/p/a.log")]))[0] == "not observable"


@pytest.mark.parametrize(("locked", "outcome"), [(True, "confirmed"), (False, "not observable")])
def test_a_lock_is_judged_by_what_is_written_while_it_is_held(locked: bool, outcome: str) -> None:
    rank = [write("/p/a.log", row=30, locked=locked)]
    assert judged(LOCK, run(rank, rank))[0] == outcome
