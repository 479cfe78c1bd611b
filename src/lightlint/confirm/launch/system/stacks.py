"""Where the processes of a run stand: each is asked by a signal and writes the stacks of its threads to a file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from lightlint.confirm.launch.system.processes import members
from lightlint.confirm.records import SUFFIX

STACKS = ".stacks"  # suffix of the file that boot gives each process
_WRITTEN = 1.0  # seconds a process has to write them
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x", re.MULTILINE)
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<row>\d+) in (?P<function>.*)$', re.MULTILINE)
_INSTALLED = re.compile(r".*/(?:(?:site|dist)-packages|lib/python3[^/]*)/(?P<rest>.*)")
_CHILD = re.compile(r"multiprocessing/process\.py$")  # what is below it belongs to the process that forked
_OWN_PACKAGE = f"{Path(__file__).parents[3]}/"
_MOST = 12  # frames of libraries that are shown


Stacks = Mapping[Path, str]


def ask(records: Path) -> Stacks:
    """The main thread's stack of each rank (or process), the innermost frame first, as it stands now; by its file.

    Only processes that said where they write are asked: the signal would end others.
    """
    files = {int(path.stem.rpartition("-")[2]): path for path in records.glob(f"*{STACKS}")}
    asked = {process: (files[process], _size(files[process])) for process in members(records) if process in files}
    for process in asked:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGRTMIN + 3)
    until = time.monotonic() + _WRITTEN
    while time.monotonic() < until and any(_size(path) == size for path, size in asked.values()):
        time.sleep(0.05)
    time.sleep(0.05)  # the rest of a dump that has begun
    found = {path: _main_thread(path, size) for path, size in asked.values()}
    return {path: stack for path, stack in found.items() if _says_something(_name(path), stack)}


def named(standing: Stacks) -> dict[str, str]:
    """The stacks as they are shown, by rank (or process)."""
    told = {_name(path): shown(stack) for path, stack in standing.items()}
    return dict(sorted(told.items(), key=lambda item: (len(item[0]), item[0])))


def places(standing: Stacks) -> dict[str, list[tuple[str, int, str]]]:
    """The user's frames of each process, innermost first, by the name of its records."""
    found = {path.stem: [frame for frame in _frames(stack) if _is_users(frame[0])] for path, stack in standing.items()}
    return {name: [(file, int(row), function) for file, row, function in frames] for name, frames in found.items()}


def _is_users(file: str) -> bool:
    return not _INSTALLED.match(file)


def _says_something(name: str, stack: str) -> bool:
    """Whether a stack is a rank's, or that of a worker which runs the user's code rather than waits for work."""
    if not name:
        return False
    if name.startswith("rank"):
        return bool(stack)
    child = [file for file, _, _ in _frames(stack)]
    at = next((number for number, file in enumerate(child) if _CHILD.search(file)), len(child))
    return any(map(_is_users, child[:at]))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _main_thread(path: Path, offset: int) -> str:
    """The last stack of a dump is that of the thread that was started first."""
    with path.open(encoding="utf-8", errors="replace") as file:
        file.seek(offset)
        return _THREAD.split(file.read())[-1]


def _name(path: Path) -> str:
    """`rank 0`, or `process 4711` for a worker and where there are no ranks; empty for a launcher's agent."""
    name = f"process {path.stem.rpartition('-')[2]}"
    with contextlib.suppress(OSError), path.with_suffix(SUFFIX).open(encoding="utf-8") as lines:
        for line in lines:
            if '"kind": "rank"' not in line and '"kind": "start"' not in line:
                continue
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if event.get("agent"):
                    return ""
                if event.get("rank") is not None and not event.get("forked"):
                    name = f"rank {event['rank']}"
    return name


def shown(stack: str) -> str:
    """A stack as it is shown: the user's own frames first, then those of the libraries they stand in, innermost first."""
    frames = _frames(stack)
    own = [f"{_short(file)}:{row} in {function}" for file, row, function in frames if _is_users(file)]
    others = [f"  {_short(file)}:{row} in {function}" for file, row, function in frames if not _is_users(file)]
    return "\n".join([*own, *others[:_MOST]])


def _frames(stack: str) -> list[tuple[str, str, str]]:
    """File, row and function of each frame, without lightlint's own and Python's frozen ones."""
    frames = [(match["file"], match["row"], match["function"]) for match in _FRAME.finditer(stack)]
    return [frame for frame in frames if not frame[0].startswith((_OWN_PACKAGE, "<"))]


def _short(file: str) -> str:
    """A path below the working directory, or below the packages it is installed in."""
    installed = _INSTALLED.match(file)
    if installed:
        return installed["rest"]
    with contextlib.suppress(ValueError):
        return str(Path(file).relative_to(Path.cwd()))
    return file
