"""A baseline: what is in it is not told, what comes anew is, and what is mended leaves it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from faulty import FAULT
from forked import run_forked


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text(FAULT)
    assert said(tmp_path, "--write-baseline", "known.json") == (0, [])
    return tmp_path


def ran(project: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = options or ("--baseline", "known.json")
    return run_forked(
        "lightlint", ".", "--isolated", "--output-format", "concise", "-q", *given, cwd=project, **environment
    )


def said(project: Path, *options: str, **environment: str) -> tuple[int, list[str]]:
    """The exit status, and file and rule of each finding."""
    done = ran(project, *options, **environment)
    return done.returncode, [f"{line.split(':')[0]} {line.split()[1]}" for line in done.stdout.splitlines()]


def codes(project: Path) -> list[str]:
    return [each["code"] for each in json.loads((project / "known.json").read_text())]


def test_what_is_known_is_not_told_wherever_it_moves(project: Path) -> None:
    train = project / "code" / "train.py"
    assert said(project) == (0, [])
    train.write_text(f"# first\n\n{FAULT}")
    assert said(project) == (0, [])
    train.rename(project / "code" / "main.py")
    assert said(project) == (0, [])
    assert [each["file"] for each in json.loads((project / "known.json").read_text())] == ["code/main.py"]


def test_what_comes_anew_is_told(project: Path) -> None:
    (project / "code" / "train.py").write_text(FAULT + FAULT.replace("train", "again"))
    assert said(project) == (1, ["code/train.py LL501"])
    (project / "other.py").write_text(FAULT)
    assert said(project) == (1, ["code/train.py LL501", "other.py LL501"])
    assert codes(project) == ["LL501"]


def test_what_is_mended_leaves_it(project: Path) -> None:
    mended = FAULT.replace("        torch.cuda.empty_cache()\n", "")
    (project / "code" / "train.py").write_text(mended)
    assert said(project, CI="true") == (0, [])
    assert codes(project) == ["LL501"], "nobody keeps what a CI machine writes"
    done = ran(project)
    assert done.stderr == "lightlint: 1 of what known.json knew is gone: it is shorter now\n"
    assert codes(project) == []
    (project / "code" / "train.py").write_text(FAULT)
    assert said(project) == (1, ["code/train.py LL501"])


@pytest.mark.parametrize(
    "options", [["--ignore", "LL501"], ["--shard", "2/2"], ["--exclude", "nothing", "--select", "LL1"]]
)
def test_what_was_not_looked_for_stays(project: Path, options: list[str]) -> None:
    (project / "code" / "train.py").write_text("")
    ran(project, "--baseline", "known.json", *options)
    assert codes(project) == ["LL501"]


def test_any_text_is_read_back(project: Path) -> None:
    (project / "known.json").unlink()
    strange = [{"cell_type": "code", "source": FAULT.replace("cache()", "cache()  # \ud800")}]
    (project / "code" / "a.ipynb").write_text(
        json.dumps({"cells": strange, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    assert said(project, "--write-baseline", "known.json") == (0, [])
    assert said(project) == (0, [])


@pytest.mark.parametrize("text", [None, "{", "[1]", '[{"file": "a.py"}]'])
def test_no_baseline_is_one_line(project: Path, text: str | None) -> None:
    if text is None:
        (project / "known.json").unlink()
    else:
        (project / "known.json").write_text(text)
    done = ran(project)
    assert (done.returncode, done.stdout) == (2, "")
    reason = "No such file or directory" if text is None else "no baseline as --write-baseline writes it"
    assert done.stderr == f"lightlint: --baseline: known.json: {reason}\n"
