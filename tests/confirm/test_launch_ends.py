"""How runs end, and what is told of it."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from launched import Place, linux_only, place

__all__ = ["place"]
pytestmark = pytest.mark.slow

WAITS = """
    import pathlib, sys, time
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("text", "ended", "status"),
    [
        ("print('done')", "finished", 0),
        ("raise SystemExit(3)", "raised", 3),
        ("1 / 0", "raised", 1),
        ("import os; os._exit(5)", "raised", 5),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed", -9),
    ],
)
def test_ending_and_status_are_reported(place: Place, text: str, ended: str, status: int) -> None:
    place.write("train.py", text)
    run = place.report("--", "python", "train.py")["run"]
    assert (run["ended"], run["status"], run["notes"]) == (ended, status, [])
    assert place.left() == []


def test_only_the_report_goes_to_standard_output(place: Place) -> None:
    place.write("train.py", "print('from the run')")
    ran = place.confirm("--", "python", "train.py")
    assert "from the run" in ran.stderr
    assert "from the run" not in ran.stdout
    assert ran.stdout.startswith("ran python train.py: finished")


def test_an_interpreter_that_cannot_be_watched_is_told(place: Place) -> None:
    place.write("train.py", "open('x').read() if False else None")
    run = place.report("--", "python", "-I", "train.py")["run"]
    assert run["ended"] == "finished"
    assert run["notes"] == ["the command wrote no record: another interpreter, or `python -I`, `-E` or `-S`"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("no-such-python", "train.py"), "no-such-python: no such program"),
        (("python", "missing.py"), "missing.py: no such file"),
        (("python", "missing.py", "--epochs", "3"), "missing.py: no such file"),
        (("ls",), "no Python script found in `ls`"),
        ((), "no command given: write it behind `--`, as in `lightlint confirm -- python train.py`"),
    ],
)
def test_a_command_that_cannot_run_is_one_line(place: Place, words: tuple[str, ...], message: str) -> None:
    place.write("train.py", "print()")
    ran = place.confirm("--", *words)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", f"lightlint: {message}\n")
    assert place.left() == []


@pytest.mark.parametrize("option", [("--devices", "0"), ("--timeout", "-3"), ("--epochs", "two")])
def test_numbers_that_make_no_sense_are_one_line(place: Place, option: tuple[str, str]) -> None:
    ran = place.confirm(*option, "--", "python", "train.py")
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1
    assert option[1] in ran.stderr


@linux_only
def test_a_timeout_says_where_the_run_stood(place: Place) -> None:
    place.write("train.py", "import time\ndef wait():\n    time.sleep(600)\nwait()\n")
    run = place.report("--timeout", "4", "--", "python", "train.py")["run"]
    assert run["ended"] == "timed out"
    (stack,) = run["stacks"].values()
    assert stack.splitlines()[:2] == ["train.py:3 in wait", "train.py:4 in <module>"]
    assert place.left() == []


@linux_only
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupted_run_is_reported_and_ended(place: Place, number: int, status: int) -> None:
    place.write("train.py", WAITS)
    process = place.start("--", "python", "train.py")
    _wait_for(process, "ready")
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert out.startswith("ran python train.py: interrupted")
    assert process.returncode == status
    assert place.left() == []


@linux_only
def test_a_disk_that_is_full_is_told(place: Place) -> None:
    place.write(
        "train.py",
        "import sys\nfrom lightlint.confirm.boot.session import current\nfor _ in range(40000):\n    current().record.emit('filler', text='x' * 100)\n",
    )
    script = (
        "mount -t tmpfs -o size=1m none $TMPDIR && exec $0 -m lightlint confirm --no-sandbox --output-format text"
        " -- python train.py"
    )
    import sys

    ran = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script, sys.executable],
        cwd=place.project,
        env={**os.environ, "TMPDIR": str(place.temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in ran.stderr or "mount" in ran.stderr:
        pytest.skip("no user namespaces here")
    assert "No space left" in ran.stderr or "disk is full" in ran.stdout, ran.stderr
    assert ran.returncode in {0, 2}


def _wait_for(process: subprocess.Popen[str], word: str) -> None:
    assert process.stderr is not None
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if word in process.stderr.readline():
            return
    raise AssertionError(f"{word} never came")
