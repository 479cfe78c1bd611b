"""The processes of a run: found by the plan's path in their environment, whatever session they moved to."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from lightlint.confirm.plan import VARIABLE

_GRACE = 3.0  # seconds between asking and killing


def members(plan_file: Path) -> Iterator[int]:
    """Numbers of the living processes that carry a plan in their environment."""
    mark = f"{VARIABLE}={plan_file}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0") and _alive(entry):
                yield int(entry.name)
        except OSError:
            continue


def _alive(entry: Path) -> bool:
    return (entry / "stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}


def end_all(group: int, plan_file: Path) -> None:
    """End every process of a run: asked first, killed after a moment."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.killpg(group, number)
        left = set(members(plan_file)) - {os.getpid()}
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, number)
        until = time.monotonic() + _GRACE
        while left and time.monotonic() < until:
            time.sleep(0.05)
            left = set(members(plan_file)) - {os.getpid()}
        if not left:
            return
