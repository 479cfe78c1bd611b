"""Runs a planned command to its end: start, watch for a stall, end the tree, say how it went."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lightlint.confirm import records
from lightlint.confirm.launch.progress import Progress
from lightlint.confirm.launch.system import stacks
from lightlint.confirm.launch.system.deaths import Deaths
from lightlint.confirm.launch.system.home import Home
from lightlint.confirm.launch.system.processes import end_all
from lightlint.confirm.launch.system.sandbox import NONE, Sandbox
from lightlint.confirm.launch.system.signals import Interrupted
from lightlint.confirm.launch.target import CommandError
from lightlint.confirm.launch.ticker import Ticker
from lightlint.confirm.plan import VARIABLE

SITE = Path(__file__).parents[1] / "site"
_POLL = 0.05  # seconds between two questions whether a run has ended
_LOOK = 1.0  # seconds between two looks at what it does
_AGAIN = 2.0  # seconds between the two looks at stacks that must be the same for a stall
_LONGEST = 70  # characters of a temporary folder: a socket's path, which has two more names, may have 108
_NOT_STARTED = (126, 127)  # exit statuses of shells and of `enter` for a program that cannot run
_STANDARD_ERROR = 2  # the run's output goes there; the report alone goes to standard output


@dataclass(frozen=True, slots=True)
class Start:
    """How a command is started.

    Attributes:
        words: the command line.
        folder: its working directory.
        variables: what its environment has besides.
        path: folders for its PYTHONPATH.
        sandbox: what keeps the user's files as they are.
        timeout: seconds after which it is ended.
        stall: seconds without progress that count as a stall.
        name: which of several runs it is, empty for the first.
    """

    words: tuple[str, ...]
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    sandbox: Sandbox = NONE
    timeout: float = 600
    stall: float = 30
    name: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run went, as `records.Run` spells it.

    Attributes:
        standing: the user's frames in which each process stood, by the name of its records.
        gone: when and how each process went, by the name of its records.
        incomplete: why records are missing, empty where none are.
        number: of the signal that told lightlint to end, 0 where none did.
    """

    ended: str
    status: int | None = None
    stacks: Mapping[str, str] = field(default_factory=dict)
    standing: Mapping[str, Any] = field(default_factory=dict)
    gone: Mapping[str, Any] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    incomplete: str = ""
    number: int = 0

    def write(self, folder: Path, notes: Sequence[str]) -> None:
        """Put it beside the records, with what else is to be told.

        Raises:
            OSError: the disk is full.
        """
        text = json.dumps(
            {**{key: value for key, value in asdict(self).items() if key != "number"}, "notes": list(notes)}
        )
        (folder / records.RUN_FILE).write_text(text, encoding="utf-8")


def environment(start: Start, plan_file: Path, scratch: Path, home: Home) -> dict[str, str]:
    """The environment that makes every Python process of a command record itself, and keeps experiment trackers quiet."""
    path = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        VARIABLE: str(plan_file),
        "PYTHONPATH": os.pathsep.join([str(SITE), *start.path, *([path] if path else [])]),
        "PYTHONUNBUFFERED": "1",
        "WANDB_MODE": "offline",
        "WANDB_DIR": str(scratch),
        "COMET_MODE": "disabled",
        "MLFLOW_TRACKING_URI": f"file:{scratch}/mlflow",
        **_temporary(home),
        **start.variables,
    }


def _temporary(home: Home) -> dict[str, str]:
    """Where temporary files go, so that those of ended processes do not stay; not where sockets would have too long paths."""
    folder = home.folder / "t"
    if len(str(folder)) > _LONGEST:
        return {}
    folder.mkdir(exist_ok=True)
    return {"TMPDIR": str(folder)}


def run(start: Start, plan_file: Path, scratch: Path, home: Home) -> Ending:
    """Run a command and wait for its end; nothing of it is left then.

    Raises:
        CommandError: the command cannot be started.
    """
    folder = plan_file.parent
    inside = {**os.environ, **start.variables}
    if shutil.which(start.words[0], path=inside.get("PATH")) is None:
        raise CommandError(f"{start.words[0]}: no such program")
    try:
        process = subprocess.Popen(
            start.sandbox.wrapped(start.words, start.folder),
            env=environment(start, plan_file, scratch, home),
            cwd=start.folder,
            stdin=subprocess.DEVNULL if sys.stdin is None or sys.stdin.isatty() else None,
            stdout=_STANDARD_ERROR,
            start_new_session=True,
        )
    except OSError as error:
        raise CommandError(f"{start.words[0]}: cannot be started: {error.strerror or error}") from error
    home.tell_group(process.pid)
    try:
        ending = _watched(process, folder, start)
    except Interrupted as told:
        ending = Ending("interrupted", number=told.number)
    finally:
        end_all(process.pid, folder)
        process.wait()
        home.tell_group(0)
    return replace(ending, written=start.sandbox.written())


def _watched(process: subprocess.Popen[bytes], folder: Path, start: Start) -> Ending:
    began = looked = time.monotonic()
    progress, deaths, ticker = Progress(folder, start.stall, began), Deaths(folder), Ticker(start.name, began)
    while process.poll() is None:
        now = time.monotonic()
        deaths.look(now)
        if now - began > start.timeout:
            ticker.end()
            return _stood("timed out", stacks.ask(folder), deaths)
        if now - looked >= _LOOK:
            looked = now
            is_still = progress.stalled(now)
            ticker.tick(now, progress.ranks, progress.step)
            standing = _standing_still(folder) if is_still else None
            if standing is not None and process.poll() is None:
                ticker.end()
                return _stood("stalled", standing, deaths)
            if is_still:
                progress.resume(time.monotonic())
        time.sleep(_POLL)
    ticker.end()
    deaths.look(time.monotonic())
    return replace(_ended(process.returncode, folder), gone=deaths.found)


def _standing_still(folder: Path) -> stacks.Stacks | None:
    """The stacks of all processes if they are the same after a while, else None."""
    before = stacks.ask(folder)
    time.sleep(_AGAIN)
    after = stacks.ask(folder)
    return after if before == after else None


def _stood(ended: str, standing: stacks.Stacks, deaths: Deaths) -> Ending:
    return Ending(ended, stacks=stacks.named(standing), standing=stacks.places(standing), gone=deaths.found)


def _ended(status: int, folder: Path) -> Ending:
    run = records.read(folder)
    ends = [event["reason"] for process in run.processes for event in process.of("end")]
    if status == 0:
        ended = "cut" if "cut" in ends else "finished"
    elif status < 0 or _was_killed(run):
        ended = "killed"
    else:
        ended = "failed to start" if status in _NOT_STARTED and not run.started else "raised"
    return Ending(ended, status, incomplete=_incomplete(folder))


def _was_killed(run: records.Run) -> bool:
    """Whether a rank under a launcher went without a word: no exception anywhere, and no end."""
    launched = any(process.start.get("agent") for process in run.processes)
    told = any(process.of("exception") for process in run.processes)
    return launched and not told and any(process.trains and not process.of("end") for process in run.processes)


def _incomplete(folder: Path) -> str:
    """Why records may be missing: a process says so by a file of its own, which needs no room."""
    if any(folder.glob(f"*{records.INCOMPLETE}")):
        return "records could not be written: the disk is full, or its folder cannot be written"
    return ""
