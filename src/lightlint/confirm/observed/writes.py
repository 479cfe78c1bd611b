"""Files that several ranks wrote at the same time."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from lightlint.confirm.observed.observation import Observation, at, listed, places_of
from lightlint.confirm.observed.syncs import syncs_of
from lightlint.confirm.records import Event, Run

_HARMLESS = re.compile(r"/__pycache__/|/\.cache/|\.lock$|\.incomplete$|\.pyc(?:\.\d+)?$")
_MOST = 5  # files that are told one by one


def shared_files(run: Run) -> Iterator[Observation]:
    """Each file that ranks of one host opened to be written between the same points that they come to together."""
    if run.world < 2:
        return
    times = {rank: [sync.time for sync in syncs] for rank, syncs in syncs_of(run).items()}
    writers: dict[tuple[str, str, int], dict[int, Event]] = {}  # host, path, points that the rank had come to
    for rank, process in run.ranks.items():
        for event in process.of("write"):
            if event["what"] == "file" and not _HARMLESS.search(event["path"]):
                between = bisect_left(times.get(rank, []), event.time)
                writers.setdefault((process.key[0], event["path"], between), {}).setdefault(rank, event)
    told: set[str] = set()
    for (_, path, _), by_rank in writers.items():
        if len(by_rank) > 1 and path not in told and len(told) < _MOST:
            told.add(path)
            first = next(iter(by_rank.values()))
            places = places_of(first["places"])
            yield Observation(
                "one file",
                f"{listed(by_rank)} wrote the same file, {Path(path).name}{at(places)}",
                ("what it holds depends on who is last",),
                ranks=tuple(by_rank),
                places=places,
                probes=frozenset({"writers-per-path"}),
            )
