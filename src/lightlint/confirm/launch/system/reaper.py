"""Ends a run whose launcher is gone, even by SIGKILL: a program of its own that imports nothing of lightlint.

It holds the read end of a pipe whose write end only the launcher has. The launcher writes the process group of each run
it starts, and 0 once that run has ended; the end of the pipe means that nobody is left to end what still runs.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator

_WAIT = 10.0  # seconds that killed processes may take to go
_QUIET = 3  # looks in a row that find nothing: a process between fork and exec does not carry the plan yet


def members(folder: str) -> Iterator[int]:
    """Numbers of the living processes of the runs whose records lie below a folder.

    They carry their plan's path in the environment; those that wrote their title over it hold a file of the records.
    """
    for name in os.listdir("/proc"):  # noqa: PTH208  # pathlib would double the start of this program
        if name.isdigit() and int(name) != os.getpid():
            try:
                if (_carries(name, folder) or _holds(name, folder)) and _is_alive(name):
                    yield int(name)
            except OSError:
                continue


def _carries(process: str, folder: str) -> bool:
    with open(f"/proc/{process}/environ", "rb") as file:
        return f"\0LIGHTLINT_CONFIRM={folder}/".encode() in b"\0" + file.read()


def _holds(process: str, folder: str) -> bool:
    """Whether a process has a file below the folder open."""
    for entry in os.scandir(f"/proc/{process}/fd"):
        try:
            if os.readlink(entry.path).startswith(f"{folder}/"):  # noqa: PTH115
                return True
        except OSError:
            continue
    return False


def _is_alive(process: str) -> bool:
    with open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] not in {"Z", "X"}


def remove(folder: str) -> None:
    """Remove a folder with all that is in it, also what a mounted overlay left without permissions."""
    import shutil

    for path, folders, _ in os.walk(folder):
        for each in folders:
            if not os.access(f"{path}/{each}", os.R_OK | os.W_OK | os.X_OK):
                os.chmod(f"{path}/{each}", 0o700)  # noqa: PTH101
    shutil.rmtree(folder, ignore_errors=True)


def main(home: str) -> None:
    """Wait for the launcher's end, then kill what is left of its run and remove its folder."""
    group = 0
    for line in sys.stdin:
        group = int(line)
    if group:
        _send(os.killpg, group)
    until, quiet = time.monotonic() + _WAIT, 0
    while quiet < _QUIET and time.monotonic() < until:
        found = list(members(home))
        for process in found:
            _send(os.kill, process)
        quiet = 0 if found else quiet + 1
        if group or found:
            time.sleep(0.1)
    remove(home)


def _send(kill: Callable[[int, int], None], number: int) -> None:
    try:
        kill(number, signal.SIGKILL)
    except OSError:
        return


if __name__ == "__main__":
    main(sys.argv[1])
