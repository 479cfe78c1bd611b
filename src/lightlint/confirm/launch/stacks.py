"""Where the processes of a run stand: each is asked by a signal and writes the stacks of its threads to a file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path

from lightlint.confirm.launch.processes import members
from lightlint.confirm.records import SUFFIX

STACKS = ".stacks"  # suffix of the file that boot gives each process
_WRITTEN = 1.0  # seconds a process has to write them
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x", re.MULTILINE)
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$', re.MULTILINE)
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python3[^/]*/|^<")
_MOST = 12  # frames of libraries that are shown


def ask(records: Path) -> Mapping[str, str]:
    """The main thread's stack of each rank (or process), the innermost frame first, as it stands now.

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
    names = {process: name for process, (path, _) in asked.items() if (name := _name(path, process))}
    return {
        name: text
        for process, name in sorted(names.items(), key=lambda item: (len(item[1]), item[1]))
        if (text := _main_thread(*asked[process]))
    }


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _main_thread(path: Path, offset: int) -> str:
    """The last stack of a dump is that of the thread that was started first."""
    with path.open(encoding="utf-8", errors="replace") as file:
        file.seek(offset)
        return _THREAD.split(file.read())[-1]


def _name(path: Path, process: int) -> str:
    """`rank 0`, or `process 4711` for a worker and where there are no ranks; empty for a launcher's agent."""
    name = f"process {process}"
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
    frames = [(match["file"], match["line"], match["function"]) for match in _FRAME.finditer(stack)]
    own = [frame for frame in frames if not _is_library(frame[0])]
    others = [frame for frame in frames if _is_library(frame[0])]
    lines = [f"{_short(file)}:{line} in {function}" for file, line, function in own]
    lines += [f"  {_short(file)}:{line} in {function}" for file, line, function in others[:_MOST]]
    return "\n".join(lines)


def _is_library(file: str) -> bool:
    return bool(_LIBRARY.search(file)) or file.startswith(sysconfig.get_path("stdlib"))


def _short(file: str) -> str:
    """A path below the working directory, or below the packages it is installed in."""
    installed = re.search(r"/(?:site|dist)-packages/(.*)", file)
    if installed:
        return installed[1]
    with contextlib.suppress(ValueError):
        return str(Path(file).relative_to(Path.cwd()))
    return file
