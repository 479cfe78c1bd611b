"""Facts of one file that knows the other files of its project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import libcst as cst

from lightlint.facts.basis import Basis
from lightlint.facts.project.project import Project
from lightlint.latest import Latest
from lightlint.sources.depth import too_deep
from lightlint.sources.load import load
from lightlint.sources.source import Source, UnreadableError


class Linked(Basis):
    """What a file's facts are made from, and those of other files, made alike.

    Args:
        source: the text.
        module: its libcst tree, parsed from `source.text`.
        project: the project its file belongs to.
        distributed: the setting of that name; None looks at the project.
        target: versions by package that the settings name.
    """

    def __init__(
        self,
        source: Source,
        module: cst.Module,
        project: Project,
        *,
        distributed: bool | None = None,
        target: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(source, module, project)
        self._distributed = distributed
        self._target = target or {}
        self._others: dict[Path, Self] = {}

    def of_class(self, name: str) -> tuple[Self, cst.ClassDef] | None:
        """A class of the project by canonical name, with the facts of its file; None for one out of sight.

        For another file than this one its whole tree is read: ask only when a finding hangs on it.
        """
        local = self.classes.local(name)
        if local is not None:
            return self, local
        found = self.project.find_class(name, self.path.parent)
        if found is None:
            return None
        other = self.other(found[1])
        named = other.classes.by_name.items() if other is not None else ()
        node = next((each for key, each in named if key.endswith(f".{found[0].name}")), None)
        return (other, node) if other is not None and node is not None else None

    def of_module(self, dotted: str) -> Self | None:
        """The facts of another module of the project, None for one out of sight; as costly as `of_class`."""
        path = self.project.find_module(dotted, self.path.parent)
        return self.other(path) if path is not None and path != self.path else None

    def other(self, path: Path) -> Self | None:
        """The facts of another file of the project, whose whole tree is read; None for one that does not parse."""
        self.project.asked.add(("text", str(path)))
        if path not in self._others:
            try:
                source = load(path)
            except UnreadableError:
                return None
            made = self.parsed(source.text)
            if made is None:
                return None
            self._others[path] = type(self)(
                source, made, self.project, distributed=self._distributed, target=self._target
            )
        return self._others[path]

    def parsed(self, text: str) -> Any:
        """What these facts are made from, of another file; None for one that does not parse."""
        return _parsed(text)


def _parse(text: str) -> cst.Module | None:
    if too_deep(text) is not None:
        return None
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError:
        return None


_parsed = Latest(_parse, 200_000)  # a tree takes a hundred times its text
