"""`lightlint confirm` as its tests start it: a real process in a project and a temporary folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found by /proc")

_PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # `python` is the tests' own


@dataclass(frozen=True)
class Place:
    """A project and the folder that stands for /tmp."""

    project: Path
    temporary: Path

    def write(self, name: str, text: str) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "lightlint", "confirm", *arguments],
            cwd=options.pop("cwd", self.project),
            env={**os.environ, "TMPDIR": str(self.temporary), "PATH": _PATH},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def confirm(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=600)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def report(self, *arguments: str, **options: Any) -> dict[str, Any]:
        """The JSON report of a run."""
        ran = self.confirm("--output-format", "json", *arguments, **options)
        assert ran.stdout, ran.stderr
        report: dict[str, Any] = json.loads(ran.stdout)
        return report

    def left(self) -> list[str]:
        """Processes and files of a run that outlived it."""
        return [*self._processes(), *(path.name for path in self.temporary.iterdir())]

    def _processes(self) -> Iterator[str]:
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                environment, words = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
            except OSError:
                continue
            mark = os.fsencode(self.temporary / "lightlint-confirm-")
            if b"LIGHTLINT_CONFIRM=" + mark in environment or mark in words:
                yield words.replace(b"\0", b" ").decode(errors="replace")

    def wait_until_clean(self, seconds: float = 30) -> list[str]:
        """What is left once the reaper had its time."""
        until = time.monotonic() + seconds
        while self.left() and time.monotonic() < until:
            time.sleep(0.1)
        return self.left()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A place; its temporary folder is not pytest's, whose path is too long for the sockets of processes."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "pyproject.toml").write_text("")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        yield Place(tmp_path / "project", Path(temporary))
