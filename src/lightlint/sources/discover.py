"""Which files to lint: those named, and the Python files and notebooks under the directories named.

Paths are strings until they are handed out: a walk makes many, and `Path.resolve` would follow links.
"""

# ruff: noqa: PTH100, PTH112, PTH114, PTH118

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lightlint.config.globs import absolute, compiled
from lightlint.memo.looked import looked
from lightlint.sources.gitignore import GitIgnore, parse_gitignore

_SUFFIXES = (".py", ".pyw", ".ipynb")
_ENVIRONMENT_MARKS = {"pyvenv.cfg", "conda-meta"}


@dataclass(frozen=True, slots=True)
class Problem:
    """A path that yields nothing to lint, and why."""

    filename: str
    message: str


# The ignore files that govern a directory, the nearest first, each with its path and the number of bytes of an absolute path
# to skip for one relative to the directory it is in.
_Ignores = tuple[tuple[str, int, GitIgnore], ...]


def discover(
    paths: Sequence[str],
    *,
    exclude: Sequence[str],
    extend_exclude: Sequence[str] = (),
    respect_gitignore: bool = True,
    force_exclude: bool = False,
    root: str | Path | None = None,
    ignored: dict[str, str] | None = None,
) -> tuple[list[Path], list[Problem]]:
    """Find the files to lint, each once, in the order of `paths` and by name inside a directory.

    A path that is named is always taken; what lies under a named directory must end in .py, .pyw or .ipynb and be
    neither excluded, nor ignored by git, nor inside a virtual environment. Symbolic links to directories are
    followed only where they are named.

    Args:
        paths: files and directories.
        exclude: globs; one without `/` is matched against names, another against the path from `root`.
        extend_exclude: more of these.
        respect_gitignore: whether .gitignore files from the repository's root down count, and its .git/info/exclude.
        force_exclude: whether `exclude` counts for paths that are named, too, and for the directories they are in,
            save those that `root` is in.
        root: where globs with a `/` start; the working directory if None.
        ignored: where to note the file whose patterns have git ignore a file or directory, by the path that this would be found by.

    Raises:
        ValueError: a glob's brackets or braces do not pair.
    """
    base = os.path.abspath(root or ".")
    excluded = _excluder((*exclude, *extend_exclude), base)
    outside = set(_lineage(base))  # a project may well lie below a directory called `dist`
    found: list[str] = []
    problems: list[Problem] = []
    for path in paths:
        if force_exclude and any(excluded(each) for each in _lineage(os.path.abspath(path)) if each not in outside):
            continue
        if os.path.isdir(path):
            ignores = _above(os.path.abspath(path)) if respect_gitignore else None
            found += _walk(path, excluded, ignores, problems, {} if ignored is None else ignored)
        elif os.path.lexists(path):
            found.append(path)
        else:
            problems.append(Problem(path, "no such file or directory"))
    return [Path(path) for path in _once(found)], problems


def _excluder(globs: Iterable[str], root: str) -> Callable[[str], bool]:
    """A test whether globs match an absolute path."""
    rooted = [absolute(glob, root) for glob in globs]
    by_name = re.compile("|".join(compiled(glob).pattern for glob in rooted if "/" not in glob) or "(?!)", re.DOTALL)
    by_path = re.compile("|".join(compiled(glob).pattern for glob in rooted if "/" in glob) or "(?!)", re.DOTALL)

    def excluded(path: str) -> bool:
        slashed = path.replace(os.sep, "/")
        return bool(by_name.fullmatch(slashed.rpartition("/")[2]) or by_path.fullmatch(slashed))

    return excluded


def _lineage(path: str) -> list[str]:
    """The path and the directories above it, the path first."""
    return [path, *map(str, Path(path).parents)]


def _walk(
    folder: str,
    excluded: Callable[[str], bool],
    ignores: _Ignores | None,
    problems: list[Problem],
    ignored: dict[str, str],
) -> Iterator[str]:
    """Paths under a directory, depth first by name; `ignores` is None where git's patterns do not count."""
    here = os.path.abspath(folder)
    looked(here)
    try:
        with os.scandir(folder) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except OSError as error:
        problems.append(Problem(folder, f"cannot be listed: {error.strerror or error}"))
        return
    if ignores is not None:
        ignores = _joined(ignores, here)
    for entry in entries:
        path = os.path.join(here, entry.name)
        is_directory = entry.is_dir(follow_symlinks=False)
        if not is_directory and not (entry.name.endswith(_SUFFIXES) and _is_file(entry)):
            continue
        if excluded(path):
            continue
        ignoring = _ignoring(ignores, path, is_directory) if ignores is not None else None
        if ignoring is not None:
            ignored[os.path.join(folder, entry.name)] = ignoring
        elif not is_directory:
            yield os.path.join(folder, entry.name)
        elif entry.name != ".git" and not _is_environment(path):
            yield from _walk(os.path.join(folder, entry.name), excluded, ignores, problems, ignored)


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a file or leads to one: not a link to nowhere, or to itself."""
    try:
        return entry.is_file()
    except OSError:
        return False


def _above(folder: str) -> _Ignores:
    """What governs a directory from the repository's root down to its parent; nothing outside a repository."""
    repository = next((above for above in _lineage(folder) if _is_repository(above)), folder)
    between = _lineage(folder)[1 : _lineage(folder).index(repository) + 1]
    ignores: _Ignores = ()
    for above in reversed(between):
        ignores = _joined(ignores, above)
    return ignores


def _joined(ignores: _Ignores, folder: str) -> _Ignores:
    """`ignores` with a directory's own; a repository's root starts anew."""
    found = [] if _is_repository(folder) else list(ignores)
    for name in (os.path.join(".git", "info", "exclude"), ".gitignore"):
        path = os.path.join(folder, name)
        looked(path)
        try:
            with open(path, "rb") as file:
                found.insert(0, (path, len(os.fsencode(folder).rstrip(b"/")) + 1, parse_gitignore(file.read())))
        except OSError:
            continue
    return tuple(found)


def _is_repository(folder: str) -> bool:
    mark = os.path.join(folder, ".git")
    # git writes to the folder itself all the time
    looked(os.path.join(mark, "HEAD") if os.path.isdir(mark) else mark)
    return os.path.lexists(mark)


def _ignoring(ignores: _Ignores, path: str, is_directory: bool) -> str | None:
    """The file whose patterns have git ignore a path."""
    encoded = os.fsencode(path.replace(os.sep, "/"))
    verdicts = ((file, patterns.verdict(encoded[skip:], is_directory)) for file, skip, patterns in ignores)
    return next((file if verdict else None for file, verdict in verdicts if verdict is not None), None)


def _is_environment(path: str) -> bool:
    looked(path)
    return any(os.path.lexists(os.path.join(path, mark)) for mark in _ENVIRONMENT_MARKS)


def _once(paths: Sequence[str]) -> Iterator[str]:
    """Each file once; of a link and the file it leads to, the file."""
    real = {os.path.abspath(path) for path in paths if not os.path.islink(path)}
    seen: set[str] = set()
    for path in paths:
        key = os.path.realpath(path) if os.path.islink(path) else os.path.abspath(path)
        if key not in seen and (key not in real or not os.path.islink(path)):
            seen.add(key)
            yield path
