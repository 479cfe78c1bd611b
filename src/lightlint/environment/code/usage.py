"""What code needs of its environment: what it imports, its syntax, the devices and processes it asks for."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from lightlint.config.settings import Settings
from lightlint.environment.code.uses import Use, uses
from lightlint.environment.describing.side import SideError
from lightlint.sources.discover import discover
from lightlint.sources.load import load
from lightlint.sources.source import Source, UnreadableError

_GPU = re.compile(r"""\.cuda\(\s*\)|device\s*=\s*["']cuda|\.to\(\s*["']cuda|accelerator\s*=\s*["'](?:gpu|cuda)""")
_BF16 = re.compile(r"bfloat16|bf16")
_WORKERS = re.compile(r"num_workers\s*=\s*(\d+)")
_COLAB = "google.colab"
_DEVICES = re.compile(r"\bdevices\s*=\s*(\d+)")


@dataclass(frozen=True, slots=True)
class Place:
    """A row of a file, or of a cell of a notebook."""

    filename: str
    row: int
    cell: int | None = None

    def __str__(self) -> str:
        cell = f"cell {self.cell}:" if self.cell is not None else ""
        return f"{self.filename}:{cell}{self.row}"


@dataclass(frozen=True)
class Usage:
    """The code of a project."""

    sources: tuple[Source, ...] = field(default=())

    @cached_property
    def imports(self) -> dict[str, Place]:
        """Top-level modules that come from outside the code and the standard library, with the first place."""
        own = {Path(source.filename).stem for source in self.sources} | {
            Path(source.filename).resolve().parent.name for source in self.sources
        }
        found: dict[str, Place] = {}
        for source in self.sources:
            for name, place in _imported(source):
                if name not in own and name not in sys.stdlib_module_names:
                    found.setdefault(name, place)
        return found

    @cached_property
    def required(self) -> frozenset[str]:
        """The imported modules that the code cannot do without: none of those inside `try`."""
        return frozenset(name for source in self.sources for name in _required(source))

    @cached_property
    def uses(self) -> tuple[tuple[Use, Place], ...]:
        """The names that the code uses of what it imports, where nothing asks first whether they are there."""
        return tuple(
            (use, _place(source, source.row_starts[use.row - 1]))
            for source in self.sources
            if (tree := _parse(source.text))
            for use in uses(tree)
        )

    @property
    def gpu(self) -> Place | None:
        """Where a GPU is asked for without a question whether there is one."""
        return next((place for place, _ in self._found(_GPU, without="is_available")), None)

    @property
    def bf16(self) -> Place | None:
        """Where bfloat16 is asked for."""
        return next((place for place, _ in self._found(_BF16)), None)

    @property
    def workers(self) -> tuple[int, Place] | None:
        """The most loader workers that are asked for."""
        return max(
            ((int(found[1]), place) for place, found in self._found(_WORKERS)), default=None, key=lambda each: each[0]
        )

    @property
    def devices(self) -> tuple[int, Place] | None:
        """The most devices that a Trainer or Fabric is given."""
        return max(
            ((int(found[1]), place) for place, found in self._found(_DEVICES)), default=None, key=lambda each: each[0]
        )

    def too_new_for(self, python: str) -> Place | None:
        """Where the code's syntax is newer than a Python version such as `3.8`.

        `ast.parse(feature_version=...)` knows match statements, parenthesised context managers, `:=`, `except*` and
        type statements, not f-strings of Python 3.12.
        """
        major, minor = map(int, python.split(".")[:2])
        for source in self.sources:
            known = _parse(source.text) is not None or (major, minor) <= sys.version_info[:2]
            if known and (error := _error(source.text, (major, minor))):
                return Place(source.filename, error)
        return None

    def _found(self, pattern: re.Pattern[str], without: str = "") -> Iterator[tuple[Place, re.Match[str]]]:
        for source in self.sources:
            if without and without in source.text:
                continue
            for found in pattern.finditer(source.text):
                yield _place(source, found.start()), found


def usage_of(paths: Sequence[str], settings: Settings) -> Usage:
    """Read the code under some paths; files that cannot be read are left out.

    Raises:
        SideError: a path does not exist.
    """
    files, missing = discover(paths, exclude=settings.exclude, respect_gitignore=settings.respect_gitignore)
    if missing:
        raise SideError(f"{missing[0].filename}: {missing[0].message}")
    sources = []
    for path in files:
        try:
            sources.append(load(path))
        except UnreadableError:
            continue
    return Usage(tuple(sources))


def _place(source: Source, offset: int) -> Place:
    cell = source.cell_at(offset)
    return Place(source.filename, source.locate(offset).row, cell.number if cell else None)


def _tops(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The top-level modules that a statement imports; of the `google` namespace, which many share, Colab's is told apart."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module and not node.level else []
    for name in names:
        yield _COLAB if f"{name}.".startswith(f"{_COLAB}.") else name.partition(".")[0]


def _imported(source: Source) -> Iterator[tuple[str, Place]]:
    tree = _parse(source.text)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            place = _place(source, source.row_starts[node.lineno - 1])
            yield from ((name, place) for name in _tops(node))


def _required(source: Source) -> Iterator[str]:
    tree = _parse(source.text)
    tried = (
        {inner for node in ast.walk(tree) if isinstance(node, ast.Try) for inner in ast.walk(node)} if tree else set()
    )
    for node in ast.walk(tree) if tree else ():
        if node in tried:
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from _tops(node)


@lru_cache(maxsize=256)
def _parse(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _error(text: str, version: tuple[int, int]) -> int | None:
    """The row of the first syntax that a Python version does not know."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text, feature_version=version)
    except SyntaxError as error:
        return error.lineno or 1
    return None
