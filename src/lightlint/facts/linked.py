"""Facts of one file that knows the other files of its project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import libcst as cst

from lightlint.facts.basis import Basis
from lightlint.facts.data.loading import Loading
from lightlint.facts.objects.pickling import Pickling
from lightlint.facts.project.project import Project
from lightlint.facts.project.summary import summarise
from lightlint.facts.ranks.processes import Processes
from lightlint.facts.ranks.world import World
from lightlint.facts.ranks.writes import Writes
from lightlint.facts.tensors.tensors import Tensors
from lightlint.memo.latest import Latest
from lightlint.sources.depth import too_deep
from lightlint.sources.load import load
from lightlint.sources.source import Source, UnreadableError

if TYPE_CHECKING:
    from lightlint.facts.versions.versions import Target

T = TypeVar("T")


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
        self._kinds: dict[Callable[[Linked], Any], Any] = {}

    def fact(self, kind: Callable[[Linked], T]) -> T:
        """What one kind of fact knows of this file: made when first asked for."""
        if kind not in self._kinds:
            self._kinds[kind] = kind(self)
        made: T = self._kinds[kind]
        return made

    @cached_property
    def processes(self) -> Processes:
        """What runs in the process of each rank."""
        return Processes(self.tree, self.names, self.classes, self.hooks, self.values, self.project, self.path)

    @cached_property
    def loading(self) -> Loading:
        """Which DataLoaders training draws from."""
        return Loading(self.tree, self.names, self.classes, self.hooks, self.values, self.loops)

    @cached_property
    def writes(self) -> Writes:
        """Which calls write files."""
        return Writes(self.tree, self.names, self.values)

    @cached_property
    def pickling(self) -> Pickling:
        """Which values can be sent to another process."""
        return Pickling(self.tree, self.names, self.classes, self.hooks)

    @cached_property
    def world(self) -> World:
        """How many ranks run this file's code."""
        package = self.project.package_name(self.path)
        from lightlint.facts.versions.versions import Version

        own = summarise(self.source.text, self.module_name, package)
        return World(
            self.project, self.path, own, self._distributed, default_all=self.lightning.surely_at_least(Version("2"))
        )

    @cached_property
    def tensors(self) -> Tensors:
        """Which values are tensors made on the CPU."""
        return Tensors(self.tree, self.names, self.classes, self.hooks, self.values, self.reaching)

    @cached_property
    def torch(self) -> Target:
        """The version of torch the file is written for."""
        return self.target("torch")

    @cached_property
    def lightning(self) -> Target:
        """The version of Lightning the file is written for."""
        return self.target("lightning")

    @cached_property
    def _own_words(self) -> tuple[str, ...]:
        from lightlint.facts.versions.own_words import said_by

        return said_by(self.source)

    def target(self, package: str) -> Target:
        """The version of a package the file is written for."""
        found = self._targeted(package, self._own_words)
        if package != "lightning" or package in self._target or not found.may_be_at_least("2.0"):
            return found
        from lightlint.facts.project.mentions import is_imported

        if not is_imported(self.project, self.source, "pl_bolts"):
            return found
        return self._targeted(package, (*self._own_words, "# names lightning-bolts >=0"))

    def _targeted(self, package: str, own_words: tuple[str, ...]) -> Target:
        from lightlint.facts.versions.targets import target_of

        if package not in self._target:
            self.project.asked.add(("target", package, str(self.path.parent), *own_words))
        return target_of(package, self.path, self.project.root, setting=self._target.get(package), pip_lines=own_words)

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
