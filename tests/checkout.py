"""This checkout as the tests use it: copied to where it may be changed, and with a package index where one is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_PARTS = (
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    ".gitignore",
    ".pre-commit-hooks.yaml",
    "rules",
    "src",
    "tests",
)


def copy_checkout(target: Path) -> Path:
    """Copy what makes the project, without what git ignores."""
    for part in _PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", ".*"))
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target / part)
    return target


def run(command: Sequence[str | Path], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command with its output captured."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment_of(**environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def environment_of(**more: str) -> dict[str, str]:
    """This environment with colours off and no settings of an outer tool, nor of the CI machine that it may be on."""
    outer = ("GIT_", "PYTEST_", "FORCE_COLOR")
    kept = {key: value for key, value in os.environ.items() if key != "CI" and not key.startswith(outer)}
    return {**kept, "NO_COLOR": "1", **more}


def run_module(module: str, *arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m MODULE`."""
    return run([sys.executable, "-m", module, *arguments], cwd, **environment)


def skip_without_index() -> None:
    """Skip the test where pip reaches no package index: it builds the wheel, which needs the build backend."""
    reason = _unreachable()
    if reason:
        pytest.skip(f"pip reaches no package index: {reason}")


@cache
def _unreachable() -> str:
    asked = run_module("pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "hatchling", cwd=ROOT)
    return asked.stderr.strip().rpartition("\n")[2] if asked.returncode else ""
