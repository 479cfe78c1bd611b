"""What other files need to know of a file: imports, classes, and the calls that set up devices and ranks.

Made with `ast`, ten times faster than a full tree, and small enough to keep for a whole project.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from lightlint.facts.canonical import canonical
from lightlint.facts.unknown import UNKNOWN


@dataclass(frozen=True, slots=True)
class ClassSummary:
    """A class: canonical names of its bases, its methods, and the constants its body and methods set (`self.x = True`)."""

    name: str
    bases: tuple[str, ...]
    methods: frozenset[str]
    constants: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class CallSummary:
    """A call that others must know of; an argument that is no constant is `UNKNOWN`."""

    name: str
    row: int
    positional: tuple[object, ...]
    arguments: Mapping[str, object]
    starred: bool


@dataclass(frozen=True, slots=True)
class ModuleSummary:
    """A file: what its names stand for, its classes, its calls of note and the canonical name of everything it calls."""

    exports: Mapping[str, str] = field(default_factory=dict)
    stars: tuple[str, ...] = ()
    classes: Mapping[str, ClassSummary] = field(default_factory=dict)
    calls: tuple[CallSummary, ...] = ()
    called: frozenset[str] = frozenset()
    imported: frozenset[str] = frozenset()


NOTED = {"lightning.Trainer", "lightning.fabric.Fabric", "torch.distributed.init_process_group"}


def summarise(text: str, module: str, package: str) -> ModuleSummary:
    """Summarise Python text; `module` is its dotted name, `package` the one relative imports start from.

    Text that `ast` of the running Python cannot parse has an empty summary: others then know nothing of it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes such as "\\d", told for each file by Python 3.12 and later
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ModuleSummary()
    return _Reader(module, package).read(tree)


class _Reader:
    def __init__(self, module: str, package: str) -> None:
        self._module = module
        self._package = package
        self._exports: dict[str, str] = {}

    def read(self, tree: ast.Module) -> ModuleSummary:
        nodes = list(ast.walk(tree))
        stars, imported = [], set()
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    imported.add(alias.name)
                    self._exports[alias.asname or alias.name.partition(".")[0]] = canonical(
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                origin = self._origin(node)
                for alias in node.names:
                    imported.add(f"{origin}.{alias.name}")
                    if alias.name == "*":
                        stars.append(origin)
                    else:
                        self._exports[alias.asname or alias.name] = canonical(f"{origin}.{alias.name}")
        for statement in tree.body:
            if isinstance(statement, ast.ClassDef):
                self._exports[statement.name] = f"{self._module}.{statement.name}"
            elif isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.Name, ast.Attribute)):
                full = self._name(statement.value)
                if full and isinstance(statement.targets[0], ast.Name):
                    self._exports.setdefault(statement.targets[0].id, full)
        calls = [(node, self._name(node.func)) for node in nodes if isinstance(node, ast.Call)]
        return ModuleSummary(
            exports=self._exports,
            stars=tuple(stars),
            classes={node.name: self._class(node) for node in nodes if isinstance(node, ast.ClassDef)},
            calls=tuple(self._call(node, name) for node, name in calls if name in NOTED),
            called=frozenset(name for _, name in calls if name),
            imported=frozenset(imported),
        )

    def _origin(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parents = self._package.split(".") if self._package else []
        kept = parents[: len(parents) - (node.level - 1)]
        return ".".join([*kept, node.module] if node.module else kept)

    def _name(self, node: ast.expr) -> str:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        root = self._exports.get(node.id, node.id)
        return canonical(".".join([root, *reversed(parts)]))

    def _class(self, node: ast.ClassDef) -> ClassSummary:
        constants: dict[str, object] = {}
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Assign, ast.AnnAssign)):
                targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
                for target in targets:
                    name = _own_attribute(target)
                    if name:
                        value = _constant(inner.value)
                        constants[name] = value if constants.get(name, value) == value else UNKNOWN
        for statement in node.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                constants.setdefault(statement.targets[0].id, _constant(statement.value))
        methods = [item.name for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]
        bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
        return ClassSummary(node.name, tuple(self._name(base) for base in bases), frozenset(methods), constants)

    def _call(self, node: ast.Call, name: str) -> CallSummary:
        keywords: dict[str, object] = {}
        starred = any(isinstance(arg, ast.Starred) for arg in node.args)
        for keyword in node.keywords:
            if keyword.arg is None:
                if isinstance(keyword.value, ast.Dict) and all(isinstance(k, ast.Constant) for k in keyword.value.keys):
                    pairs = zip(keyword.value.keys, keyword.value.values, strict=True)
                    keywords |= {str(_constant(key)): _constant(value) for key, value in pairs}
                else:
                    starred = True
            else:
                keywords[keyword.arg] = _constant(keyword.value)
        return CallSummary(name, node.lineno, tuple(_constant(arg) for arg in node.args), keywords, starred)


def _own_attribute(target: ast.expr) -> str:
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        return target.attr
    return ""


def _constant(node: ast.expr | None) -> object:
    if node is None:
        return UNKNOWN
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return UNKNOWN
