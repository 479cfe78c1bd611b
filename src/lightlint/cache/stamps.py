"""By what a run sees that a path has not changed since an earlier one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from stat import S_ISDIR

_COARSE = 2_000_000_000  # nanoseconds in which a later change can have the same time, in some file systems
_FINE = 20_000_000  # the same for the time that nobody can set
Stamp = list[int] | None  # times of a folder, times and size of a file; None where nothing is
NEVER = [-1]  # no path has it
OF_FOLDER, OF_FILE = 2, 3  # the lengths of a folder's and of a file's
_SECOND = 1_000_000_000


def stamp(path: str) -> Stamp:
    """The stamp of a path."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    times = [status.st_mtime_ns, status.st_ctime_ns]
    return times if S_ISDIR(status.st_mode) else [*times, status.st_size]


def taken(paths: Iterable[str], start: int) -> dict[str, Stamp] | None:
    """The stamps of some paths by their full names; None where a file has changed since a time."""
    stamps = {path: stamp(path) for path in sorted({os.path.abspath(each) for each in paths})}  # noqa: PTH100
    changed = any(found and len(found) == OF_FILE and max(found[:2]) >= start for found in stamps.values())
    return None if changed else stamps


def is_recent(found: list[int], start: int) -> bool:
    """Whether a path was changed so shortly before a time that a later change could have the same stamp."""
    return found[0] >= start - _COARSE or found[1] >= start - _FINE


def is_settled(found: list[int], start: int) -> bool:
    """Whether a path surely has not changed since a time: where times are whole seconds, a change may hide in one."""
    return found[0] < start and (found[0] % _SECOND != 0 or not is_recent(found, start))
