"""The project's modules as a rehearsal imports them."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from lightlint.explore.needed import needed_by_classes
from lightlint.explore.parsed import COMMANDS, Parsed, said_in


class ProjectSources:
    """Files of a project, parsed when first asked for.

    Args:
        find: the file of a module by dotted name (without leading dots) as seen from a folder, None for a library's.
        read: the module that a file holds, None for one that cannot be read.
        given: modules that are at hand, by file.
        text: the text of a file.
        registers: whether running a module may do more than to give its names their values.
        settings: the file that is opened by a name in a folder, and what it says; None where none is in sight.
        has_engine: whether what stands in a folder is launched with an engine that shards what is trained.
        gives: whether settings say what an argument of a class is, both by their names.
    """

    def __init__(
        self,
        find: Callable[[str, Path], Path | None],
        read: Callable[[str], Parsed | None],
        given: Mapping[str, Parsed | None],
        text: Callable[[str], str],
        registers: Callable[[str], bool],
        settings: Callable[[str, Path], tuple[Path, object] | None] = lambda _, __: None,
        has_engine: Callable[[Path], bool] = lambda _: False,
        gives: Callable[[str, str], bool] = lambda _, __: False,
    ) -> None:
        self._settings, self._has_engine, self._gives = settings, has_engine, gives
        self._find, self._read, self._text, self._does_register = find, read, text, registers
        self._parsed: dict[str, Parsed | None] = dict(given)
        self._registers: dict[str, bool] = {}
        self._found: dict[tuple[str, str], str | None] = {}

    def alone(self, *whole: str) -> ProjectSources:
        """Files without the project around them: only the bases of their classes are imported, and of each file but a
        `whole` one only what its classes may hang on is there."""
        return _Alone(self, whole)

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

    def registers(self, file: str) -> bool:
        """Whether running a module may do more than to give its names their values."""
        if file not in self._registers:
            self._registers[file] = self._does_register(file)
        return self._registers[file]

    def uses(self, file: str, name: str) -> bool:
        """Whether a file names something that it imports once more: else it may import it for what its module does."""
        if os.path.basename(file) == "__init__.py":  # noqa: PTH119 - asked often
            return True
        parsed = self.parsed(file)
        return parsed is not None and parsed.names_again(name)

    def settings(self, name: str, importer: str) -> tuple[str, object] | None:
        """The file of settings that a program opens by a name, and what it says; None where none is in sight."""
        found = self._settings(name, Path(importer).parent)
        return (str(found[0]), found[1]) if found is not None else None

    def has_engine(self, file: str) -> bool:
        """Whether a file is launched with an engine that shards what is trained, as the settings beside it say."""
        return self._has_engine(Path(file).parent)

    def gives(self, cls: str, name: str) -> bool:
        """Whether settings of the project, as Hydra's, make objects of a class and say what an argument of it is."""
        return self._gives(cls, name)

    def is_generator(self, file: str, node: ast.AST) -> bool:
        """Whether a function of a file yields."""
        parsed = self.parsed(file)
        return parsed is not None and parsed.is_generator(node)

    def is_command(self, _: str, function: ast.AST) -> bool:
        """Whether a function of a file trains or evaluates, as one that a program does as it is told."""
        return not COMMANDS.isdisjoint(said_in(function).names)

    def is_idle(self, file: str, test: ast.If) -> bool:
        """Whether a test decides only about messages: rehearsing it the other way would show nothing."""
        parsed = self.parsed(file)
        return parsed is not None and parsed.is_idle(test)

    def last_answers(self, file: str, function: ast.AST) -> frozenset[int]:
        """The tests (by id) behind which a function gives its last value: where they fail, it raises or gives none."""
        parsed = self.parsed(file)
        return parsed.last_answers(function) if parsed is not None else frozenset()


class _Alone(ProjectSources):
    """Files as far as their classes hang on them: a class has what its bases in other files give it."""

    def __init__(self, project: ProjectSources, whole: tuple[str, ...]) -> None:
        given = {each: project.parsed(each) for each in whole}
        asking = project._settings, project._has_engine, project._gives
        super().__init__(project._find, project._read, given, project._text, project._does_register, *asking)
        self._wanted: dict[str, set[str]] = {}
        """The names that the bases of a file's classes begin with, and those that others want of it: it may have them from yet
        another."""
        self._imported: dict[str, dict[str, dict[str, str]]] = {}

    def find(self, dotted: str, importer: str) -> str | None:
        if importer not in self._imported:
            tree = self.tree(importer) or ast.Module([], [])
            self._imported[importer] = _imported(tree)
            self._wanted.setdefault(importer, set()).update(_bases(tree))
        wanted = self._wanted[importer]
        asked = {name for name, bound in self._imported[importer].get(dotted, {}).items() if bound in wanted}
        file = super().find(dotted, importer) if asked else None
        if file is not None:
            self._wanted.setdefault(file, set()).update(asked)
        return file

    def parsed(self, file: str) -> Parsed | None:
        if file not in self._parsed:
            whole = self._read(file)
            tree = whole.tree if whole is not None else None
            needed = needed_by_classes(tree, self._text(file)) if tree is not None else []
            self._parsed[file] = Parsed(ast.Module(needed, []), self._text(file)) if tree is not None else None
        return self._parsed[file]


def _bases(tree: ast.Module) -> set[str]:
    """The names that the bases of a module's classes begin with."""
    bases = (base for node in tree.body if isinstance(node, ast.ClassDef) for base in node.bases)
    return {name.id for base in bases for name in [_root(base)] if name is not None}


def _root(node: ast.expr) -> ast.Name | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _imported(tree: ast.Module) -> dict[str, dict[str, str]]:
    """What a module's imports take, and the names that they bind: by the module that it is in, and by what itself may be one."""
    found: dict[str, dict[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for each in node.names:
                found.setdefault(each.name, {})[each.name] = each.asname or each.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for each in node.names:
                inner = f"{module}{'' if module.endswith('.') else '.'}{each.name}"
                for dotted in (module, inner):
                    found.setdefault(dotted, {})[each.name] = each.asname or each.name
    return found
