"""In which folders a project says what it installs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import Enum
from functools import cache
from itertools import islice
from pathlib import Path

from lightlint.memo.looked import looked

_SIDE = frozenset(
    (
        *(
            ".binder",
            "binder",
            "docker",
            ".docker",
            "dockers",
            "dockerfile",
            "dockerfiles",
            "docker-images",
            "docker_images",
            "container",
        ),
        *("containers", "singularity", "apptainer", ".devcontainer", "reqs", "deps", "dependencies", "env", "envs"),
        *("environment", "environments", "conda", "conda_env", "conda_envs", "conda-env", "venv_requirements"),
        *("tools", "tool", "scripts", "script", "bin", "build", "install", "installation", "setup", "deploy"),
        *("deployment", "ci", ".ci", ".github", ".circleci", "devops", "infra", "ops", "k8s", "requirement"),
        *("requirements_files", "constraints", "packaging", "misc", "etc", "utils", "docs", "doc"),
    )
)
_LEFT_OUT = frozenset(("node_modules", "data", "datasets", "dataset", "logs", "outputs", "results", "venv", "wandb"))
_AT_THE_TOP = (
    "readme",
    "license",
    ".gitignore",
    "setup.py",
    "setup.cfg",
    "pyproject.toml",
    "pipfile",
    "uv.lock",
    "poetry.lock",
)
_MOST_FOLDERS, _MOST_ENTRIES, _MOST_INNER = 30, 4000, 120


class Reach(Enum):
    """Which files speak for a directory: its own, those in folders for that, those in any folder without code.

    `ABOVE` is `SIDE` without folders that hold code, which may be projects themselves.
    """

    OWN = "own"
    SIDE = "side"
    ABOVE = "above"
    WIDE = "wide"


def folders_for(directory: Path, reach: Reach) -> Iterator[Path]:
    """The folders whose files speak for a directory."""
    inner = entries_of(directory)[1]
    if reach is Reach.OWN:
        yield directory
        yield from (each for each in inner if each.name.lower() == "requirements")
        return
    aside = [each for each in inner if each.name.lower() in _SIDE]
    if reach is Reach.ABOVE:
        aside = [each for each in aside if not _stands_alone(each)]
    elif reach is Reach.WIDE:
        known = {*aside, *(each for each in inner if each.name.startswith(".") or each.name.lower() in _LEFT_OUT)}
        aside = [each for each in inner[:_MOST_FOLDERS] if each not in known and not _stands_alone(each)]
    for folder in aside[:_MOST_FOLDERS]:
        yield folder
        if reach is not Reach.WIDE:
            yield from (each for each in entries_of(folder)[1][:_MOST_FOLDERS] if not _has_code(each))


def upper_folders(top: Path) -> tuple[Path, ...]:
    """The folder in which a project starts, and those in it."""
    return (top, *entries_of(top)[1][:_MOST_FOLDERS])


def inner_folders(top: Path) -> Iterator[Path]:
    """The folders of a project, those near its top first; what is hidden or holds data is left out."""
    level = [top]
    left = _MOST_INNER
    while level and left > 0:
        yield from level[:left]
        left -= len(level)
        level = [each for folder in level for each in entries_of(folder)[1][:_MOST_FOLDERS] if _may_hold_code(each)]


def _may_hold_code(folder: Path) -> bool:
    return not folder.name.startswith(".") and folder.name.lower() not in _LEFT_OUT


def run_folders(top: Path) -> Iterator[Path]:
    """The folders of a project in which trackers noted what was installed when a run began: Weights & Biases, MLflow."""
    for folder in upper_folders(top):
        for kept in entries_of(folder)[1]:
            runs = entries_of(kept)[1][:_MOST_FOLDERS] if kept.name in ("wandb", "mlruns") else ()
            for run in runs:
                yield run
                yield from _below(run, 1 if kept.name == "wandb" else 3)


def _below(folder: Path, depth: int) -> Iterator[Path]:
    for each in entries_of(folder)[1][:_MOST_FOLDERS]:
        yield each
        if depth > 1:
            yield from _below(each, depth - 1)


def is_project(folder: Path) -> bool:
    """Whether a folder holds code, or what stands at the top of a project."""
    return _has_code(folder) or any(file.name.lower().startswith(_AT_THE_TOP) for file in entries_of(folder)[0])


def _stands_alone(folder: Path) -> bool:
    """Whether a folder is a project of its own, or holds one: it speaks for itself only."""
    return is_project(folder) or any(is_project(each) for each in entries_of(folder)[1][:_MOST_FOLDERS])


def _has_code(folder: Path) -> bool:
    """Whether a folder holds Python files besides setup.py: it is a project, or a part of one, for itself."""
    names = {file.name for file in entries_of(folder)[0]}
    return any(name.endswith((".py", ".ipynb")) and name not in {"setup.py", "noxfile.py"} for name in names)


@cache
def entries_of(folder: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The files and the folders in a folder, by name; links to folders are left out."""
    looked(folder)
    files: list[Path] = []
    folders: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            for entry in islice(entries, _MOST_ENTRIES):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(folder / entry.name)
                else:
                    files.append(folder / entry.name)
    except OSError:
        return (), ()
    return tuple(sorted(files)), tuple(sorted(folders))
