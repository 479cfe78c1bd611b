"""When a run counts as stalled: by records and processor time as a run leaves them."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from launched import Place, linux_only, place

from lightlint.confirm.launch.progress import Progress
from lightlint.confirm.launch.system.stacks import shown

__all__ = ["place"]
pytestmark = linux_only


def tell(records: Path, process: int, *events: dict[str, Any]) -> None:
    with (records / f"host-{process}.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({"time": 0.0, "step": 0, **event}) + "\n" for event in events)


LOADER = {"kind": "loader", "loader": 0}
NCCL = {"kind": "rank", "rank": 0, "world": 2, "backend": "nccl"}


@pytest.mark.parametrize(
    ("events", "stalled"),
    [
        ([{"kind": "start"}], False),
        ([{"kind": "start"}, {"kind": "package", "name": "torch"}], False),
        ([LOADER], True),
        ([{"kind": "rank", "rank": 0, "world": 2, "backend": "gloo"}], True),
    ],
)
def test_nothing_stalls_before_loader_or_process_group(
    tmp_path: Path, events: list[dict[str, Any]], stalled: bool
) -> None:
    progress = Progress(tmp_path, stall=30, now=0)
    tell(tmp_path, 1, *events)
    assert not progress.stalled(1)
    assert not progress.stalled(30)
    assert progress.stalled(32) == stalled


def test_a_new_record_is_progress(tmp_path: Path) -> None:
    progress = Progress(tmp_path, stall=30, now=0)
    tell(tmp_path, 1, LOADER)
    assert not progress.stalled(1)
    tell(tmp_path, 1, {"kind": "batch"})
    assert not progress.stalled(40)
    assert progress.stalled(71)
    progress.resume(71)
    assert not progress.stalled(100)


def test_a_line_that_is_still_being_written_is_no_error(tmp_path: Path) -> None:
    progress = Progress(tmp_path, stall=30, now=0)
    tell(tmp_path, 1, LOADER)
    with (tmp_path / "host-1.jsonl").open("a") as file:
        file.write('{"kind": "step", "ti')
    assert not progress.stalled(1)
    assert progress.stalled(40)


def test_under_nccl_slow_steps_raise_the_threshold(tmp_path: Path) -> None:
    progress = Progress(tmp_path, stall=30, now=0)
    tell(tmp_path, 1, NCCL)
    assert not progress.stalled(1)
    assert not progress.stalled(100)  # the first step compiles
    tell(tmp_path, 1, {"kind": "step", "time": 100.0}, {"kind": "step", "time": 108.0})
    assert not progress.stalled(109)
    assert not progress.stalled(188)
    assert progress.stalled(190)


@pytest.mark.parametrize(("spins", "stalled"), [(LOADER, False), (NCCL, True)])
def test_processor_time_is_progress_except_under_nccl(tmp_path: Path, spins: dict[str, Any], stalled: bool) -> None:
    busy = subprocess.Popen(
        [sys.executable, "-c", "while True: pass"],
        env={**os.environ, "LIGHTLINT_CONFIRM": str(tmp_path / "plan.json")},
    )
    try:
        progress = Progress(tmp_path, stall=30, now=0)
        tell(tmp_path, busy.pid, spins)
        assert not progress.stalled(1)
        assert progress.stalled(200) == stalled
    finally:
        busy.kill()
        busy.wait()


def test_a_stack_is_shown_with_the_users_frames_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    dump = f"""0x00007f (most recent call first):
  File "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 5356 in barrier
  File "/env/lib/python3.11/contextlib.py", line 81 in inner
  File "{tmp_path}/train.py", line 20 in main
  File "/home/me/shared/tools.py", line 3 in run
  File "<frozen importlib._bootstrap>", line 241 in _call
  File "{tmp_path}/train.py", line 23 in <module>
"""
    assert shown(dump).splitlines() == [
        "train.py:20 in main",
        "/home/me/shared/tools.py:3 in run",
        "train.py:23 in <module>",
        "  torch/distributed/distributed_c10d.py:5356 in barrier",
        "  contextlib.py:81 in inner",
    ]


@pytest.mark.slow
def test_a_line_of_progress_on_a_terminal_only(place: Place) -> None:
    place.write("train.py", "import time\ntime.sleep(3)\n")
    theirs, ours = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "lightlint", "confirm", "--", "python", "train.py"],
            cwd=place.project,
            env={**os.environ, "TERM": "xterm"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=ours,
            check=False,
        )
        shown = os.read(theirs, 100_000).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 0
    assert re.search(r"lightlint: starting, \d+ s\x1b\[K\r", shown)
    assert shown.endswith("\x1b[K")
    assert place.confirm("--", "python", "train.py").stderr == ""


def test_progress_counts_ranks_and_steps(tmp_path: Path) -> None:
    progress = Progress(tmp_path, stall=30, now=0)
    for rank in range(2):
        tell(tmp_path, rank + 1, {"kind": "rank", "rank": rank, "world": 2, "backend": "gloo"})
    progress.stalled(1)
    assert (progress.ranks, progress.step) == (2, 0)
    tell(tmp_path, 1, {"kind": "step", "n": 3})
    progress.stalled(2)
    assert (progress.ranks, progress.step) == (2, 3)
