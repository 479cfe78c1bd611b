"""What a whole run said is said again, and only where that still stands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from checkout import run_module
from faulty import FAULT
from forked import run_forked

PROJECT = '[project]\nname = "x"\n[tool.lightlint]\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose last run found everything in the cache, so that the next says what was kept of it."""
    folder = tmp_path / "outside" / "project"
    (folder / "code").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "code" / "train.py").write_text(FAULT)
    (folder / "code" / "clean.py").write_text("import torch\n")
    first = lightlint(folder, "code")  # makes the cache's folder
    age(folder)
    second, third = lightlint(folder, "code"), lightlint(folder, "code")
    assert first.stdout == second.stdout == third.stdout
    assert len(kept(folder)) == 1
    return folder


def age(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder, *folder.parents[:2]):
        if ".lightlint_cache" not in path.parts:
            os.utime(path, (1_000_000_000, 1_000_000_000))
    time.sleep(0.05)  # the time of the last change of a file's data about itself cannot be set


def kept(folder: Path) -> list[Path]:
    return list(folder.glob(".lightlint_cache/run-*.json"))


def lightlint(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_forked("lightlint", *arguments, cwd=folder, **environment)


def imported(folder: Path, *arguments: str) -> str:
    """The modules that a run imports."""
    return run_module("lightlint", *arguments, cwd=folder, PYTHONPROFILEIMPORTTIME="1").stderr


def test_the_next_run_reads_neither_rules_nor_settings(project: Path) -> None:
    modules = imported(project, "code")
    assert "lightlint.cache.whole" in modules
    assert not any(name in modules for name in ("lightlint.config.settings", "lightlint.pages", "argparse", "libcst"))
    again = lightlint(project, "code")
    assert (again.returncode, again.stderr) == (1, "")
    assert again.stdout == lightlint(project, "--no-cache", "code").stdout


def _edit(folder: Path) -> None:
    (folder / "code" / "clean.py").write_text(FAULT)


def _same_size(folder: Path) -> None:
    file = folder / "code" / "train.py"
    file.write_text(FAULT.replace("empty_cache", "synchronize"))
    assert "synchronize" in file.read_text()


def _add(folder: Path) -> None:
    (folder / "code" / "new.py").write_text(FAULT)


def _remove(folder: Path) -> None:
    (folder / "code" / "train.py").unlink()


def _ignore_by_git(folder: Path) -> None:
    (folder / ".gitignore").write_text("train.py\n")


def _settings(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(f"{PROJECT}ignore = ['LL501']\n")


def _nearer_settings(folder: Path) -> None:
    (folder / "code" / "lightlint.toml").write_text("ignore = ['LL501']\n")


def _pins(folder: Path) -> None:
    (folder / "requirements.txt").write_text("torch==1.4\n")


@pytest.mark.parametrize(
    "change", [_edit, _same_size, _add, _remove, _ignore_by_git, _settings, _nearer_settings, _pins]
)
def test_a_change_is_seen(project: Path, change: Callable[[Path], None]) -> None:
    change(project)
    assert lightlint(project, "code").stdout == lightlint(project, "--no-cache", "code").stdout


def test_other_arguments_places_and_colours_are_other_runs(project: Path) -> None:
    assert lightlint(project, "code", "--exit-zero").returncode == 0
    assert "code/train.py" in lightlint(project, "code").stdout
    inner = lightlint(project / "code", ".")
    assert " --> train.py" in inner.stdout
    assert "\x1b[" in lightlint(project, "code", FORCE_COLOR="1", NO_COLOR="").stdout
    assert "\x1b[" not in lightlint(project, "code").stdout


def test_damage_is_a_miss(project: Path) -> None:
    whole = lightlint(project, "code").stdout
    (file,) = kept(project)
    for data in (b"", b"{}", file.read_bytes()[:-9], file.read_bytes().replace(b"empty_cache", b"empty_cashe")):
        file.write_bytes(data)
        assert lightlint(project, "code").stdout == whole


def test_one_command_line_pushes_out_no_findings(project: Path) -> None:
    before = {path for path in project.glob(".lightlint_cache/*.json") if path not in kept(project)}
    (file,) = kept(project)
    for number in range(40):
        shutil.copy(file, file.with_name(f"run-{number}.json"))
    (project / "code" / "clean.py").write_text("import torch  # changed\n")
    lightlint(project, "code")
    assert before <= set(project.glob(".lightlint_cache/*.json"))
    assert len(kept(project)) <= 16


def test_a_reader_that_goes_away_is_no_error(project: Path) -> None:
    command = f"{sys.executable} -m lightlint code | head -c 1"
    done = subprocess.run(["bash", "-c", command], cwd=project, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("L", "")


@pytest.mark.parametrize("options", [("--fix",), ("--fix", "--unsafe-fixes"), ("--diff",)])
def test_repairs_are_the_same_with_and_without_a_cache(tmp_path: Path, options: tuple[str, ...]) -> None:
    said: list[tuple[str, str, int, str]] = []
    for name, more in (("cached", ()), ("plain", ("--no-cache",))):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "pyproject.toml").write_text(PROJECT)
        (folder / "train.py").write_text(FAULT)
        lightlint(folder, "train.py", *more)  # what there is to repair is known from here
        ran = lightlint(folder, "train.py", *options, *more)
        said.append((ran.stdout, ran.stderr, ran.returncode, (folder / "train.py").read_text()))
    assert said[0] == said[1]
    assert "1 finding" in said[0][0] + said[0][1]


def test_a_second_repair_has_nothing_to_lint(project: Path) -> None:
    assert "Fixed 1 finding" in lightlint(project, "code", "--fix").stdout
    assert "empty_cache" not in (project / "code" / "train.py").read_text()
    age(project)
    said = [lightlint(project, "code", "--fix").stdout for _ in range(3)]
    assert said == ["No findings in 2 files.\n"] * 3
    modules = imported(project, "code", "--fix")
    assert not any(name in modules for name in ("lightlint.config.settings", "lightlint.pages", "argparse", "libcst"))


def test_what_was_repaired_is_not_said_of_the_next_run(project: Path) -> None:
    train = project / "code" / "train.py"
    for _ in range(3):
        assert "Fixed 1 finding" in lightlint(project, "code", "--fix").stdout
        train.write_text(FAULT)
        age(project)
