"""Runs a planned command to its end: start, watch for a stall, end the tree, say how it went."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lightlint.confirm.launch.processes import end_all
from lightlint.confirm.plan import VARIABLE

SITE = Path(__file__).parents[1] / "site"
_POLL = 0.2  # seconds between two looks at a run


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run went: `ended` as `records.Run` spells it, the exit status, and what stalled processes stood in."""

    ended: str
    status: int | None
    stacks: Mapping[str, str]


def environment(plan_file: Path, scratch: Path) -> dict[str, str]:
    """The environment that makes every Python process of a command record itself, and keeps experiment trackers quiet."""
    path = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        VARIABLE: str(plan_file),
        "PYTHONPATH": os.pathsep.join([str(SITE), *([path] if path else [])]),
        "PYTHONUNBUFFERED": "1",
        "WANDB_MODE": "offline",
        "WANDB_DIR": str(scratch),
        "COMET_MODE": "disabled",
        "MLFLOW_TRACKING_URI": f"file:{scratch}/mlflow",
    }


def run(words: Sequence[str], plan_file: Path, scratch: Path, *, timeout: float, stall: float) -> Ending:
    """Run a command and wait for its end.

    Args:
        words: the command.
        timeout: seconds after which it is ended.
        stall: seconds without a new record and without processor time after which it counts as stalled.

    Raises:
        OSError: the command cannot be started.
    """
    process = subprocess.Popen(
        words, env=environment(plan_file, scratch), stdout=sys.stderr.fileno(), start_new_session=True
    )
    try:
        ended = _wait(process, timeout)
    except BaseException:
        end_all(process.pid, plan_file)
        raise
    status = process.poll()
    end_all(process.pid, plan_file)
    if ended == "timed out":
        return Ending(ended, None, {})
    if status == 0:
        return Ending("finished", 0, {})
    return Ending("killed" if status is not None and status < 0 else "raised", status, {})


def _wait(process: subprocess.Popen[bytes], timeout: float) -> str:
    began = time.monotonic()
    while process.poll() is None:
        if time.monotonic() - began > timeout:
            return "timed out"
        time.sleep(_POLL)
    return "finished"
