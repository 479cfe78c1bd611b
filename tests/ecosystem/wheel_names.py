"""Which public names packages lost from one version to the next, read from their wheels; nothing is imported or run.

pip download --no-deps --dest WHEELS transformers==4.49.0 transformers==4.50.3 ...
python tests/ecosystem/wheel_names.py WHEELS > src/lightlint/data/removed-names.toml

A name stands at the first of the versions at hand that lacks it, and only if no later one has it again. What torch-api.toml
tells of is left out.
"""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import lightlint
from lightlint.facts.versions.versions import Version

_HEAD = """\
# Written by tests/ecosystem/wheel_names.py from the wheels named below: classes, functions and modules that a version of a
# package no longer has. Each stands at the first version read that lacks it, and none read later has it again.
schema = 1
"""
_WHEEL = re.compile(r"([A-Za-z0-9_]+)-(\d[^-]*)-.*\.whl")
_INNER = re.compile(r"\._|\.(?:test|convert|dummy|commands?\b|conftest)")
_ON_DEMAND = ("Tokenizer", "TokenizerFast", "ImageProcessorFast")
# Made in other ways: all names below were asked of transformers 4.57.6 and 5.24.0, and these they have.
_STILL_THERE = {
    "transformers.DummyObject",
    "transformers.image_processing_utils_fast.divide_to_patches",
    "transformers.image_processing_utils_fast.get_max_height_width",
    "transformers.pipelines.AggregationStrategy",
    "transformers.pipelines.NerPipeline",
    "transformers.pipelines.TableQuestionAnsweringArgumentHandler",
    "transformers.pipelines.TokenClassificationArgumentHandler",
    "transformers.pipelines.ZeroShotClassificationArgumentHandler",
}
_BLOCKS = ("body", "orelse", "finalbody", "handlers")


class Wheel:
    """The modules of one version of a package.

    Args:
        path: the file.
        package: its top-level module.
    """

    def __init__(self, path: Path, package: str) -> None:
        self.package = package
        self._archive = zipfile.ZipFile(path)
        self._files = {
            name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name
            for name in self._archive.namelist()
            if name.startswith(f"{package}/") and name.endswith(".py")
        }
        self._known: dict[str, frozenset[str]] = {}
        self._listed: dict[str, frozenset[str]] = {}

    @cached_property
    def modules(self) -> frozenset[str]:
        """The package and the public modules right below it."""
        return frozenset(name for name in self._files if name.count(".") < 2 and not _INNER.search(name))

    @cached_property
    def reached(self) -> frozenset[str]:
        """All modules, and all that the public ones bind, be it another package's: what is moved and imported is still there."""
        bound = {f"{module}.{name}" for module in self.modules for name in _any_bound(self._tree(module))}
        return frozenset((*self._files, *self.names, *bound))

    @cached_property
    def names(self) -> frozenset[str]:
        """The modules, what the package and the packages in it export, and what the modules in it define; no constants."""
        found = {f"{module}.{name}" for module in self.modules for name in self._public(module)}
        return self.modules | {name for name in found if not name.rpartition(".")[2].isupper()}

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the package's `__init__.py`: names that it makes when they are asked for are among them."""
        return frozenset(re.findall(r"\w+", self._archive.read(self._files[self.package]).decode("utf-8")))

    def _public(self, module: str) -> frozenset[str]:
        if self._files[module].endswith("__init__.py"):
            return self.exports(module)
        defined = (ast.FunctionDef, ast.ClassDef)
        return frozenset(
            each.name for each in self._tree(module).body if isinstance(each, defined) and each.name[0] != "_"
        )

    def _tree(self, module: str) -> ast.Module:
        return ast.parse(self._archive.read(self._files[module]).decode("utf-8"))

    def exports(self, module: str) -> frozenset[str]:
        """The public names that a module binds by itself or takes from the rest of its package."""
        if module not in self._known:
            self._known[module] = frozenset()  # a circle of star imports ends here
            if module in self._files:
                tree = self._tree(module)
                found = {name for name in self._bound(tree, module) if not name.startswith("_")}
                self._known[module] = frozenset(found)
                self._listed[module] = next(filter(None, map(_all, tree.body)), self._known[module])
        return self._known[module]

    def _bound(self, node: ast.AST, module: str) -> Iterator[str]:
        for statement in (each for block in _BLOCKS for each in getattr(node, block, ())):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield statement.name
            elif isinstance(statement, ast.ImportFrom):
                yield from self._imported(statement, module)
            elif isinstance(statement, ast.Assign):
                yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
                yield from _structure(statement)
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                yield statement.target.id
            else:
                yield from self._bound(statement, module)

    def _imported(self, statement: ast.ImportFrom, module: str) -> Iterator[str]:
        """What comes from the package itself: what is another's may go without anybody's notice."""
        base = module if self._files[module].endswith("__init__.py") else module.rpartition(".")[0]
        for _ in range(statement.level - 1):
            base = base.rpartition(".")[0]
        source = ".".join(filter(None, (base, statement.module))) if statement.level else statement.module or ""
        if source.partition(".")[0] != self.package:
            return
        for alias in statement.names:
            yield from self._by_star(source) if alias.name == "*" else [alias.asname or alias.name]

    def _by_star(self, module: str) -> frozenset[str]:
        """What `import *` takes from a module."""
        exported = self.exports(module)
        return self._listed.get(module, exported)


def _all(statement: ast.stmt) -> frozenset[str] | None:
    """What `__all__ = [...]` lists."""
    match statement:
        case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=elements) | ast.Tuple(elts=elements)):
            return frozenset(str(each.value) for each in elements if isinstance(each, ast.Constant))
    return None


def _any_bound(tree: ast.Module) -> Iterator[str]:
    """The names that a module binds anywhere, functions and classes included."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _structure(statement: ast.Assign) -> Iterator[str]:
    """The names in `_import_structure = {"module": ["Name"]}` and `_import_structure["module"] = [...]`, which are made when asked for."""
    if "_import_structure" in ast.unparse(statement.targets[0]):
        for node in ast.walk(statement.value):
            if isinstance(node, ast.List):
                yield from (each.value for each in node.elts if isinstance(each, ast.Constant))


@dataclass(frozen=True)
class Surface:
    """What of a version is looked at."""

    package: str
    names: frozenset[str]
    words: frozenset[str]
    reached: frozenset[str]


def read(path: Path, package: str) -> Surface:
    wheel = Wheel(path, package)
    return Surface(package, wheel.names, wheel.words, wheel.reached)


def removed(versions: Sequence[tuple[str, Surface]]) -> dict[str, list[str]]:
    """The names that went, by the version that lacks them first; what lies in a module that went is not told apart."""
    found: dict[str, list[str]] = defaultdict(list)
    later: set[str] = set()
    for (_, older), (version, newer) in reversed(list(pairwise(versions))):
        later |= newer.reached
        gone = {name for name in older.names - later if not _is_made(name, newer)}
        found[version] += (name for name in gone if name.rpartition(".")[0] not in gone)
        later |= older.names
    return {version: sorted(names) for version, names in found.items() if names}


def _is_made(name: str, version: Surface) -> bool:
    """Whether a package makes a name when it is asked for, as transformers 5 does with many tokenizers and image processors."""
    room, _, last = name.rpartition(".")
    if name in _STILL_THERE:
        return True
    return last.endswith(_ON_DEMAND) or (room == version.package and last in version.words)


def _told() -> frozenset[str]:
    """The names that a rule of family LL7 knows."""
    text = (Path(lightlint.__file__).parent / "data" / "torch-api.toml").read_text("utf-8")
    return frozenset(re.findall(r'^"([\w.]+)" = ', text, re.MULTILINE))


def main(folder: Path) -> None:
    told = _told()
    by_package: dict[str, list[tuple[str, Path]]] = defaultdict(list)
    for path in folder.glob("*.whl"):
        if wheel := _WHEEL.fullmatch(path.name):
            by_package[wheel[1]].append((wheel[2], path))
    print(_HEAD, end="")
    for package, paths in sorted(by_package.items()):
        paths.sort(key=lambda each: Version(each[0]))
        found = removed([(version, read(path, package)) for version, path in paths])
        print(f"\n# {', '.join(version for version, _ in paths)}\n[{package}.removed]")
        for version in sorted(found, key=Version):
            names = [name for name in found[version] if name not in told]
            if names:
                print(f'"{Version(version).minor}" = [{", ".join(f"{chr(34)}{name}{chr(34)}" for name in names)}]')


if __name__ == "__main__":
    main(Path(sys.argv[1]))
