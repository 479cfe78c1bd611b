"""The package as users get it: installed from the checkout into an environment of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from checkout import ROOT, copy_checkout, run, skip_without_index

pytestmark = pytest.mark.slow

FAULTY = """\
import torch


def train(model, loader, optimizer):
    for batch in loader:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
        torch.cuda.empty_cache()
"""

# libcst and rich, and what they bring along (libcst: a YAML reader that depends on the Python version)
EXPECTED = {"lightlint", "libcst", "rich", "markdown-it-py", "mdurl", "pygments"}
ALLOWED = EXPECTED | {"pyyaml", "pyyaml-ft", "pip", "setuptools", "typing-extensions"}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` directory of an environment with lightlint from a wheel in it."""
    skip_without_index()
    folder = tmp_path_factory.mktemp("install")
    made = run([sys.executable, "-m", "venv", folder / "venv"], folder)
    assert made.returncode == 0, made.stderr
    binaries = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    installed = run([binaries / "python", "-m", "pip", "install", "-q", copy_checkout(folder / "checkout")], folder)
    assert installed.returncode == 0, installed.stderr
    return binaries


def test_only_libcst_and_rich_come_along(environment: Path, tmp_path: Path) -> None:
    listed = run([environment / "python", "-m", "pip", "list", "--format", "json"], tmp_path)
    names = {package["name"].lower().replace("_", "-") for package in json.loads(listed.stdout)}
    assert names >= EXPECTED
    assert names <= ALLOWED


def test_rule_book_is_packed_whole(environment: Path, tmp_path: Path) -> None:
    listed = run([environment / "lightlint", "rule", "--all", "--output-format", "json"], tmp_path)
    packed = {(rule["code"], rule["name"]) for rule in json.loads(listed.stdout)}
    assert packed == {
        (path.read_text("utf-8").split("code: ", 1)[1][:5], path.stem) for path in (ROOT / "rules").glob("*/*.md")
    }


def test_commands_work_outside_the_checkout(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FAULTY)
    command = environment / "lightlint"
    version = run([command, "--version"], tmp_path)
    assert (version.returncode, version.stderr) == (0, "")
    assert version.stdout.startswith("lightlint ")

    page = run([command, "rule", "LL501"], tmp_path)
    assert page.returncode == 0
    assert "## Why it is bad" in page.stdout

    found = run([command, "train.py", "--output-format", "concise"], tmp_path)
    assert found.returncode == 1
    assert found.stdout.startswith("train.py:9:9: LL501 ")

    fixed = run([command, "train.py", "--fix"], tmp_path)
    assert fixed.returncode == 0
    assert "empty_cache" not in (tmp_path / "train.py").read_text()


def test_scaffolder_says_that_it_needs_a_checkout(environment: Path, tmp_path: Path) -> None:
    done = run([environment / "python", "-m", "lightlint.scaffold", "index"], tmp_path)
    assert done.returncode == 2
    assert "in a checkout of lightlint only" in done.stderr
    assert done.stderr.count("\n") == 1
