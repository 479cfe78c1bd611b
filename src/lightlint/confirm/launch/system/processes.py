"""The processes of a run: found by the plan's path in their environment, whatever session they moved to."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from lightlint.confirm.launch.system import reaper

_GRACE = 3.0  # seconds between asking and killing
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100  # of processor time in a second


def members(records: Path) -> Iterator[int]:
    """Numbers of the living processes of the run whose records lie in a folder."""
    return reaper.members(str(records))


def processor_seconds(process: int) -> float:
    """Processor time that a process has used so far, 0 for one that is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def is_runnable(process: int) -> bool:
    """Whether a process waits for a processor or a disk rather than for another process."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in {"R", "D"}
    except OSError:
        return False


def end_all(group: int, records: Path) -> None:
    """End every process of a run: asked first, killed after a moment."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.killpg(group, number)
        left = set(members(records))
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, number)
        until = time.monotonic() + _GRACE
        while left and time.monotonic() < until:
            time.sleep(0.05)
            left = set(members(records))
        if not left:
            return
