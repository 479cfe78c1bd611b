"""The pre-commit hooks, through pre-commit itself, in a repository of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from checkout import copy_checkout, run, run_module, skip_without_index

pytestmark = pytest.mark.slow

pytest.importorskip("pre_commit")

FAULTY = """\
import torch


def train(model, loader, optimizer: torch.optim.Optimizer):
    for batch in loader:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
        torch.cuda.empty_cache()
"""
REPAIRED = FAULTY.replace("        torch.cuda.empty_cache()\n", "")
NOTEBOOK = '{"cells": [{"cell_type": "code", "source": %s}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n'


class Repository:
    """A git repository that has the hooks in its configuration."""

    def __init__(self, folder: Path, hooks: Path, home: Path) -> None:
        self.folder, self._home = folder, home
        folder.mkdir()
        git(folder, "init", "-q")
        self.write("README.md", "# trainings\n")
        revision = git(hooks, "rev-parse", "HEAD").stdout.strip()
        entries = "".join(f"      - id: {hook}\n" for hook in ("lightlint", "lightlint-fix"))
        self.write(".pre-commit-config.yaml", f"repos:\n  - repo: {hooks}\n    rev: {revision}\n    hooks:\n{entries}")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        git(self.folder, "add", "-A")

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def run_hook(self, hook: str) -> tuple[int, str]:
        done = run_module("pre_commit", "run", hook, "--all-files", cwd=self.folder, PRE_COMMIT_HOME=str(self._home))
        return done.returncode, done.stdout


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    identity = ["-c", "user.name=tests", "-c", "user.email=tests@localhost", "-c", "commit.gpgsign=false"]
    done = run(["git", *identity, *arguments], folder)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout as a repository that pre-commit can clone."""
    skip_without_index()
    copy = copy_checkout(tmp_path_factory.mktemp("hooks") / "lightlint")
    git(copy, "init", "-q")
    git(copy, "add", "-A")
    git(copy, "commit", "-qm", "hooks")
    return copy


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps the hooks' environment, made once for all tests."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def repository(tmp_path: Path, hooks: Path, home: Path) -> Repository:
    return Repository(tmp_path / "dist", hooks, home)


def test_no_python_files_are_no_failure(repository: Repository) -> None:
    for hook in ("lightlint", "lightlint-fix"):
        status, said = repository.run_hook(hook)
        assert status == 0, said
        assert "no files to check" in said


def test_clean_files_pass(repository: Repository) -> None:
    repository.write("train.py", REPAIRED)
    repository.write("plain.py", "print('hello')\n")
    assert repository.run_hook("lightlint")[0] == 0
    assert repository.run_hook("lightlint-fix")[0] == 0


def test_finding_fails_the_hook_and_is_shown(repository: Repository) -> None:
    repository.write("train.py", FAULTY)
    status, said = repository.run_hook("lightlint")
    assert status == 1
    assert "LL501" in said
    assert "train.py:9:9" in said
    assert repository.read("train.py") == FAULTY


def test_fix_hook_changes_the_file(repository: Repository) -> None:
    repository.write("train.py", FAULTY)
    status, said = repository.run_hook("lightlint-fix")
    assert status == 1
    assert "files were modified by this hook" in said
    assert repository.read("train.py") == REPAIRED
    git(repository.folder, "add", "-A")
    assert repository.run_hook("lightlint-fix")[0] == 0


def test_notebooks_are_checked(repository: Repository) -> None:
    import json

    repository.write("train.ipynb", NOTEBOOK % json.dumps(FAULTY))
    status, said = repository.run_hook("lightlint")
    assert status == 1
    assert "LL501" in said


def test_settings_and_excludes_of_the_repository_count(repository: Repository) -> None:
    repository.write("pyproject.toml", '[tool.lightlint]\nextend-exclude = ["old"]\nignore = ["LL5"]\n')
    repository.write("train.py", FAULTY)
    repository.write("old/train.py", FAULTY.replace("empty_cache()", "empty_cache("))
    status, said = repository.run_hook("lightlint")
    assert status == 0, said


def test_try_repo_runs_both_hooks(tmp_path: Path, hooks: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "train.py").write_text(FAULTY)
    git(tmp_path, "add", "-A")
    done = run_module("pre_commit", "try-repo", hooks, "--all-files", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.count("Failed") == 2
    assert "LL501" in done.stdout
    assert (tmp_path / "train.py").read_text() == REPAIRED
