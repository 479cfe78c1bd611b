"""Reads the Python sources of one released wheel with `ast`: its modules, what they bind, its classes and their bases."""

from __future__ import annotations

import ast
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType

_HOPS = 12


@dataclass(frozen=True)
class Class:
    """A class definition and the module it stands in."""

    node: ast.ClassDef
    module: str


class Wheel:
    """The sources inside of one wheel; close it after use.

    Raises:
        ValueError: the file is no wheel of a release.
    """

    def __init__(self, path: Path) -> None:
        parts = path.name.split("-")
        if path.suffix != ".whl" or len(parts) < 5:
            raise ValueError(f"{path} is no wheel: its name should be like pytorch_lightning-2.6.0-py3-none-any.whl")
        self.version = parts[1]
        try:
            self._zip = zipfile.ZipFile(path)
        except zipfile.BadZipFile as error:
            raise ValueError(f"{path} is no wheel: {error}") from None
        self._trees: dict[str, ast.Module] = {}
        self._bound: dict[str, dict[str, str | ast.ClassDef | None]] = {}

    def __enter__(self) -> Wheel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    @cached_property
    def _files(self) -> dict[str, str]:
        """The file of each module, by dotted name."""
        names = (name for name in self._zip.namelist() if name.endswith(".py"))
        return {name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in names}

    def tree(self, module: str) -> ast.Module:
        """The parsed text of a module, empty for one that the wheel has not."""
        if module not in self._trees:
            name = self._files.get(module)
            self._trees[module] = ast.parse(self._zip.read(name) if name else b"")
        return self._trees[module]

    def mentions(self, module: str, text: str) -> bool:
        """Whether the text of a module holds another one: the cheap question before its tree."""
        return text.encode() in self._zip.read(self._files[module])

    def modules(self, package: str) -> Iterator[str]:
        """The modules at or below a package."""
        return (module for module in sorted(self._files) if module == package or module.startswith(package + "."))

    def has(self, dotted: str) -> bool:
        """Whether a module, or a name that a module binds, can be imported."""
        module, _, name = dotted.rpartition(".")
        if dotted in self._files:
            return True
        if module in self._files:
            bound = self._names(module)
            return name in bound or any(self.has(f"{star}.{name}") for star in self._stars(module))
        return bool(module) and any(each.startswith(dotted + ".") for each in self._files)

    def find_class(self, dotted: str) -> Class | None:
        """The class that a dotted name stands for, through re-exports; None where it is not in the wheel."""
        for _ in range(_HOPS):
            module, _, name = dotted.rpartition(".")
            bound = self._names(module)
            found = bound.get(name)
            if isinstance(found, ast.ClassDef):
                return Class(found, module)
            if found is None:
                found = next((f"{star}.{name}" for star in self._stars(module) if self.has(f"{star}.{name}")), None)
            if found is None:
                return None
            dotted = found
        return None

    def lookup_order(self, dotted: str) -> list[Class]:
        """A class and those of its bases that are in the wheel, in the order in which Python looks names up."""
        found: list[Class] = []
        self._collect(dotted, found)
        last = {id(each.node): place for place, each in enumerate(found)}
        return [each for place, each in enumerate(found) if last[id(each.node)] == place]

    def _collect(self, dotted: str, found: list[Class]) -> None:
        known = self.find_class(dotted)
        if known is None:
            return
        found.append(known)
        for base in known.node.bases:
            self._collect(self._resolve(known.module, ast.unparse(base)), found)

    def _resolve(self, module: str, written: str) -> str:
        first, _, rest = written.partition(".")
        bound = self._names(module).get(first)
        start = bound if isinstance(bound, str) else f"{module}.{first}"
        return f"{start}.{rest}" if rest else start

    def _names(self, module: str) -> dict[str, str | ast.ClassDef | None]:
        """What a module binds: classes, the dotted names of imports, None for everything else."""
        if module not in self._bound:
            bound: dict[str, str | ast.ClassDef | None] = {}
            for node in _statements(self.tree(module).body):
                bound.update(self._binds(node, module))
            self._bound[module] = bound
        return self._bound[module]

    def _binds(self, node: ast.stmt, module: str) -> dict[str, str | ast.ClassDef | None]:
        match node:
            case ast.ClassDef():
                return {node.name: node}
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return {node.name: None}
            case ast.ImportFrom():
                source = self._source(node, module)
                return {each.asname or each.name: f"{source}.{each.name}" for each in node.names if each.name != "*"}
            case ast.Import():
                return {
                    each.asname or each.name.partition(".")[0]: each.name
                    if each.asname
                    else each.name.partition(".")[0]
                    for each in node.names
                }
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                return {each.id: None for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        return {}

    def _stars(self, module: str) -> list[str]:
        nodes = [node for node in _statements(self.tree(module).body) if isinstance(node, ast.ImportFrom)]
        return [self._source(node, module) for node in nodes if node.names[0].name == "*"]

    def _source(self, node: ast.ImportFrom, module: str) -> str:
        """The module that an import takes names from, relative ones made absolute."""
        if not node.level:
            return node.module or ""
        is_package = self._files.get(module, "").endswith("/__init__.py")
        parts = module.split(".")
        kept = parts[: len(parts) - node.level + (1 if is_package else 0)]
        return ".".join([*kept, *([node.module] if node.module else [])])


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements and those inside of `if`, `try` and `with`: not in functions or classes."""
    for node in body:
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(node, name, []))
        for handler in getattr(node, "handlers", []):
            yield from _statements(handler.body)


def own_statements(node: ast.ClassDef) -> Iterator[ast.stmt]:
    """The statements of a class body, those under `if` included."""
    return _statements(node.body)
