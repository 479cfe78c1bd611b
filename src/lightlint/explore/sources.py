"""The project's modules as a rehearsal imports them."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from lightlint.explore.parsed import Parsed


class ProjectSources:
    """Files of a project, parsed when first asked for.

    Args:
        find: the file of a module by dotted name (without leading dots) as seen from a folder, None for a library's.
        read: the module that a file holds, None for one that cannot be read.
        given: modules that are at hand, by file.
    """

    def __init__(
        self,
        find: Callable[[str, Path], Path | None],
        read: Callable[[str], Parsed | None],
        given: Mapping[str, Parsed],
    ) -> None:
        self._find, self._read = find, read
        self._parsed: dict[str, Parsed | None] = dict(given)
        self._found: dict[tuple[str, str], str | None] = {}

    def alone(self) -> ProjectSources:
        """The same files without the project around them: nothing is imported from it."""
        return _Alone(self._find, self._read, {file: each for file, each in self._parsed.items() if each is not None})

    def find(self, dotted: str, importer: str) -> str | None:
        """The file of a module as `importer` imports it, None for a library's."""
        key = (dotted, os.path.dirname(importer))  # noqa: PTH120 - asked for each import of each rehearsal
        if key not in self._found:
            self._found[key] = self._look_up(dotted, Path(importer))
        return self._found[key]

    def _look_up(self, dotted: str, importer: Path) -> str | None:
        if dotted.startswith("."):
            level = len(dotted) - len(dotted.lstrip("."))
            folder = importer.parent
            for _ in range(level - 1):
                folder = folder.parent
            inner = dotted.lstrip(".")
            if inner:
                self._find(inner, folder)  # so that who keeps what was asked for knows when such a file appears
            target = folder.joinpath(*(part for part in inner.split(".") if part))
            for candidate in (target.with_suffix(".py") if target != folder else folder, target / "__init__.py"):
                if candidate.suffix == ".py" and candidate.is_file():
                    return str(candidate)
            return None
        found = self._find(dotted, importer.parent)
        return str(found) if found is not None and str(found) != str(importer) else None

    def parsed(self, file: str) -> Parsed | None:
        """The module that a file holds, None for one that cannot be read."""
        if file not in self._parsed:
            self._parsed[file] = self._read(file)
        return self._parsed[file]

    def tree(self, file: str) -> ast.Module | None:
        """What `ast` makes of a file, None for one that cannot be read."""
        parsed = self.parsed(file)
        return parsed.tree if parsed is not None else None

    def is_generator(self, file: str, node: ast.AST) -> bool:
        """Whether a function of a file yields."""
        parsed = self.parsed(file)
        return parsed is not None and parsed.is_generator(node)

    def last_answers(self, file: str, function: ast.AST) -> frozenset[int]:
        """The tests (by id) behind which a function gives its last value: where they fail, it raises or gives none."""
        parsed = self.parsed(file)
        return parsed.last_answers(function) if parsed is not None else frozenset()


class _Alone(ProjectSources):
    def find(self, dotted: str, importer: str) -> str | None:
        return None
