"""Whether a run still goes on: new records, and processor time where that proves anything.

A fixed time-out calls slow imports and loaded machines a hang, so nothing counts before the first loader or process
group. Under NCCL a waiting rank spins: there only records count, and the time of the processes that are no rank.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lightlint.confirm.launch.system.processes import is_runnable, members, processor_seconds
from lightlint.confirm.records import SUFFIX

_BUSY = 0.05  # share of one processor from which on the processes of a run count as working
_BUSY_EACH = 0.02  # the same for each process: polling ones use some
_SLOWEST = 10  # a step under NCCL may take so many times the slowest one seen
_FIRST = 4  # and the first, which compiles and tunes kernels, so many times the threshold
_TOLD = tuple(f'"kind": "{kind}"' for kind in ("rank", "loader", "step"))


class Progress:
    """What was seen of a run at the last look.

    Args:
        records: the folder of the run's records.
        stall: seconds without progress that count as a stall.
        now: seconds of the monotonic clock.
    """

    def __init__(self, records: Path, stall: float, now: float) -> None:
        self._records = records
        self._stall = stall
        self._looked = self._moved = now
        self._files: dict[Path, _File] = {}
        self._seconds: dict[int, float] = {}

    def stalled(self, now: float) -> bool:
        """Look: whether nothing has gone on for too long."""
        if self._new_records() or self._working(now - self._looked):
            self._moved = now
        self._looked = now
        return self._begun and now - self._moved > self._threshold

    @property
    def ranks(self) -> int:
        """Processes that joined a process group, or that draw or step without one."""
        return sum(file.is_rank for file in self._files.values()) or int(self._begun)

    @property
    def step(self) -> int:
        """Optimizer steps of the rank that took most."""
        return max((file.step for file in self._files.values()), default=0)

    def resume(self, now: float) -> None:
        """A closer look has shown that the run goes on."""
        self._moved = now

    @property
    def _begun(self) -> bool:
        return any(file.begun for file in self._files.values())

    @property
    def _threshold(self) -> float:
        spinning = [file for file in self._files.values() if file.spins]
        if not spinning:
            return self._stall
        slowest = max(file.slowest for file in spinning)
        return max(self._stall, _SLOWEST * slowest) if slowest else _FIRST * self._stall

    def _new_records(self) -> bool:
        for path in self._records.glob(f"*{SUFFIX}"):
            if path not in self._files:
                self._files[path] = _File(path)
        grown = [file.read() for file in self._files.values()]
        return any(grown)

    def _working(self, elapsed: float) -> bool:
        spinning = {file.process for file in self._files.values() if file.spins}
        watched = [process for process in members(self._records) if process not in spinning]
        now = {process: processor_seconds(process) for process in watched}
        gained = sum(seconds - self._seconds.get(process, 0.0) for process, seconds in now.items())
        self._seconds = now
        busy = max(_BUSY, _BUSY_EACH * len(watched)) * elapsed
        return gained > busy or any(is_runnable(process) for process in watched)


class _File:
    """The records of one process, read on from where the last look ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._stepped: float | None = None
        self.process = int(path.name.removesuffix(SUFFIX).rpartition("-")[2])
        self.begun = False
        self.is_rank = False
        self.step = 0
        self.spins = False
        self.slowest = 0.0  # seconds from one step to the next

    def read(self) -> bool:
        """Read what is new; whether there was anything."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                new = file.read()
        except OSError:
            return False
        self._offset += len(new)
        for event in _events(new):
            self._take(event)
        return bool(new)

    def _take(self, event: dict[str, Any]) -> None:
        self.is_rank = self.is_rank or event["kind"] == "rank"
        if event["kind"] == "step":
            self.step = max(self.step, event.get("n", 0))
            if self._stepped is not None:
                self.slowest = max(self.slowest, event["time"] - self._stepped)
            self._stepped = event["time"]
        else:
            self.begun = True
            self.spins = self.spins or "nccl" in str(event.get("backend", ""))


def _events(lines: bytes) -> Iterator[dict[str, Any]]:
    for line in lines.decode(errors="replace").splitlines():
        if any(kind in line for kind in _TOLD):
            try:
                yield json.loads(line)
            except ValueError:  # a line still being written
                continue
