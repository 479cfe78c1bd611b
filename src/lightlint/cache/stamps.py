"""By what a run sees that a path has not changed since an earlier one."""

from __future__ import annotations

import os
from stat import S_ISDIR

_COARSE = 2_000_000_000  # nanoseconds in which a later change can have the same time, in some file systems
_FINE = 20_000_000  # the same for the time that nobody can set
Stamp = list[int] | None  # times of a folder, times and size of a file; None where nothing is
NEVER = [-1]  # no path has it
OF_FILE = 3  # the length of a file's


def stamp(path: str) -> Stamp:
    """The stamp of a path."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    times = [status.st_mtime_ns, status.st_ctime_ns]
    return times if S_ISDIR(status.st_mode) else [*times, status.st_size]


def is_recent(found: list[int], start: int) -> bool:
    """Whether a path was changed so shortly before a time that a later change could have the same stamp."""
    return found[0] >= start - _COARSE or found[1] >= start - _FINE
