"""Nothing of a run outlives it, however it and the launcher end."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launched import Place, linux_only, place

from lightlint.confirm.launch.system import reaper

__all__ = ["place"]
pytestmark = [linux_only, pytest.mark.slow]

FAMILY = """
    import os, subprocess, sys, time
    open(f"{len(sys.argv)}.txt", "w").write("x")
    if len(sys.argv) == 1:
        for _ in range(2):
            subprocess.Popen([sys.executable, __file__, "child"], start_new_session=True)
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    print("ready", flush=True)
    time.sleep(600)
"""


def test_a_killed_launcher_leaves_nothing(place: Place) -> None:
    place.write("train.py", FAMILY)
    process = place.start("--", "python", "train.py")
    assert process.stderr is not None
    while "ready" not in process.stderr.readline():
        pass
    assert place.left() != []
    process.kill()
    process.communicate()
    assert place.wait_until_clean() == []


@pytest.mark.parametrize("seed", range(10))
def test_a_run_interrupted_at_any_time_leaves_nothing(place: Place, seed: int) -> None:
    chance = random.Random(seed)
    place.write("train.py", FAMILY)
    process = place.start("--no-sandbox", "--", "python", "train.py")
    time.sleep(chance.uniform(0.0, 4.0))
    process.send_signal(chance.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL]))
    process.communicate()
    assert place.wait_until_clean() == []


def test_a_process_that_hides_its_environment_is_found_by_its_records(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    script = "import sys, time; file = open(sys.argv[1], 'w'); print(flush=True); time.sleep(600)"
    hidden = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "records" / "x.jsonl")], stdout=subprocess.PIPE, env={}
    )
    try:
        assert hidden.stdout is not None
        hidden.stdout.readline()
        assert list(reaper.members(str(tmp_path / "records"))) == [hidden.pid]
        assert list(reaper.members(str(tmp_path / "rec"))) == []
    finally:
        hidden.kill()
        hidden.communicate()


def test_folders_without_permissions_are_removed(tmp_path: Path) -> None:
    work = tmp_path / "home" / "work" / "work"
    work.mkdir(parents=True)
    (work / "file").write_text("")
    work.chmod(0)
    reaper.remove(str(tmp_path / "home"))
    assert list(tmp_path.iterdir()) == []
