"""What other files need to know of a file: imports, classes, and the calls that set up devices and ranks.

Made with `ast`, ten times faster than a full tree, and small enough to keep for a whole project.
"""

from __future__ import annotations

import ast
import builtins
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from lightlint.facts.code.literals import constant, with_cuda
from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.project.star_arguments import arguments
from lightlint.syntax import syntax_of
from lightlint.values.canonical import LIBRARIES, absolute, canonical


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


_ATOMS = (ast.Name, ast.Constant, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
_LEAVES = {str, int, bool, type(None), *_ATOMS, *(kind for each in _ATOMS for kind in each.__subclasses__())}
_BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)
_IMPORTS = {ast.Import, ast.ImportFrom}
_SETTINGS = {ast.Assign, ast.AnnAssign, ast.Attribute}
NOTED = {
    "lightning.Trainer",
    "lightning.fabric.Fabric",
    "torch.distributed.init_process_group",
    "lightning.callbacks.ModelCheckpoint",
    "lightning.callbacks.EarlyStopping",
}


def summarise(text: str, module: str, package: str) -> ModuleSummary:
    """Summarise Python text; `module` is its dotted name, `package` the one relative imports start from.

    Text that `ast` of the running Python cannot parse has an empty summary: others then know nothing of it.
    """
    try:
        tree = syntax_of(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ModuleSummary()
    return _Reader(module, package).read(tree)


class _Reader:
    def __init__(self, module: str, package: str) -> None:
        self._module = module
        self._package = package
        self._stars: list[str] = []
        self._exports: dict[str, str] = {}
        self._inner: dict[str, str] = {}

    def read(self, tree: ast.Module) -> ModuleSummary:
        nodes = _nodes(tree)
        imports = [node for node in nodes if type(node) in _IMPORTS]
        settings = [node for node in nodes if type(node) in _SETTINGS]
        outer = _outer(tree)
        meanings: dict[str, set[str]] = defaultdict(set)
        for name, full in self._imports(outer):
            meanings[name].add(full)
        for definition in outer:
            if isinstance(definition, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                meanings[definition.name].add(f"{self._module}.{definition.name}")
        self._exports = {name: _one(found) for name, found in meanings.items()}
        for name, value in _assigned(outer):
            alias = isinstance(value, (ast.Name, ast.Attribute)) and name not in meanings
            meanings[name].add(self._name(value) if alias else "")
            self._exports[name] = _one(meanings[name])
        self._inner = dict(self._imports(imports))
        calls = [(node, self._name(node.func)) for node in nodes if type(node) is ast.Call]
        return ModuleSummary(
            exports={name: full for name, full in self._exports.items() if full},
            stars=tuple(self._stars),
            classes=self._classes(outer, settings),
            calls=tuple(self._call(node, name, tree) for node, name in calls if name in NOTED),
            called=frozenset(name for _, name in calls if name),
            imported=frozenset(self._imported(imports)),
        )

    def _imports(self, nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
        """Names that imports bind, with what they mean."""
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    yield alias.asname or first, canonical(alias.name if alias.asname else first)
            elif isinstance(node, ast.ImportFrom):
                origin = self._origin(node)
                for alias in node.names:
                    if alias.name != "*":
                        full = f"{origin}.{alias.name}"
                        yield alias.asname or alias.name, full if node.level else canonical(full)
                    elif origin not in self._stars:
                        self._stars.append(origin)

    def _imported(self, nodes: Iterable[ast.AST]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (f"{self._origin(node)}.{alias.name}" for alias in node.names)

    def _origin(self, node: ast.ImportFrom) -> str:
        return absolute(node.module or "", node.level, self._package) if node.level else node.module or ""

    def _name(self, node: ast.expr) -> str:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        root = self._root(node.id) if isinstance(node, ast.Name) else ""
        return canonical(".".join([root, *reversed(parts)])) if root else ""

    def _root(self, word: str) -> str:
        known = self._exports.get(word, self._inner.get(word))
        if known is not None:
            return known
        if hasattr(builtins, word):
            return f"builtins.{word}"
        if len(self._stars) == 1 and self._stars[0].startswith(LIBRARIES):
            return f"{self._stars[0]}.{word}"
        return f"{self._module}.{word}" if self._stars else word

    def _classes(self, outer: Iterable[ast.stmt], settings: Sequence[ast.AST]) -> dict[str, ClassSummary]:
        """The module's own classes; one with several definitions, or an import of its name, has a base out of sight.

        `settings` are the module's nodes that may set attributes.
        """
        found: dict[str, ClassSummary] = {}
        by_row = sorted(settings, key=_row)
        rows = [_row(each) for each in by_row]
        for node in outer:
            if isinstance(node, ast.ClassDef):
                last = node.end_lineno or node.lineno
                one = self._class(node, by_row[bisect_left(rows, node.lineno) : bisect_right(rows, last)])
                before = found.get(node.name, one)
                if not self._exports[node.name] or before.bases != one.bases:
                    one = replace(one, bases=(*one.bases, ""))
                found[node.name] = one
        return found

    def _class(self, node: ast.ClassDef, settings: Sequence[ast.AST]) -> ClassSummary:
        inside = _outer(node)
        constants: dict[str, object] = {}
        for name, expression in (*_own_assigned(settings), *_assigned(inside)):
            value = constant(expression)
            constants[name] = value if constants.get(name, value) == value else UNKNOWN
        methods = [item.name for item in inside if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]
        bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
        return ClassSummary(node.name, tuple(self._name(base) for base in bases), frozenset(methods), constants)

    def _call(self, node: ast.Call, name: str, tree: ast.Module) -> CallSummary:
        keywords: dict[str, object] = {}
        starred = any(isinstance(arg, ast.Starred) for arg in node.args)
        for keyword in node.keywords:
            if keyword.arg is None:
                spread = arguments(tree, node, keyword.value)
                keywords |= spread or {}
                starred = starred or spread is None
            else:
                keywords[keyword.arg] = with_cuda(keyword.value)
        return CallSummary(name, node.lineno, tuple(constant(arg) for arg in node.args), keywords, starred)


def _nodes(root: ast.AST) -> list[ast.AST]:
    """As `ast.walk`, without names, constants and operators: half of the nodes, and no summary asks for them."""
    found = [root]
    for node in found:
        for name in node._fields:
            value = getattr(node, name, None)
            if type(value) is list:
                found.extend(each for each in value if type(each) not in _LEAVES)
            elif value is not None and type(value) not in _LEAVES:
                found.append(value)
    return found


def _outer(body: ast.Module | ast.ClassDef) -> list[ast.stmt]:
    """The statements that run in the scope of a module or class itself, under tests and in blocks too."""
    found: list[ast.stmt] = []
    pending: list[ast.stmt] = list(reversed(body.body))
    while pending:
        statement = pending.pop()
        found.append(statement)
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            below = [each for each in ast.iter_child_nodes(statement) if isinstance(each, _BLOCKS)]
            inner = [each for part in below for each in ([part] if isinstance(part, ast.stmt) else part.body)]
            pending.extend(reversed(inner))
    return found


def _assigned(statements: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Names with the expressions they are assigned; None adds no meaning."""
    for statement in statements:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            nothing = isinstance(statement.value, ast.Constant) and statement.value.value is None
            yield from (
                (target.id, statement.value) for target in targets if isinstance(target, ast.Name) and not nothing
            )


def _one(meanings: Set[str]) -> str:
    """What a name means that means one thing, else nothing."""
    return next(iter(meanings)) if len(meanings) == 1 else ""


def _own_assigned(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr | None]]:
    """Attributes of `self` that a class's nodes set, with what they are assigned; None for a part of a value."""
    whole: dict[ast.expr, ast.expr | None] = {}
    for inner in nodes:  # a target comes after the statement it belongs to
        if isinstance(inner, (ast.Assign, ast.AnnAssign)):
            targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
            whole |= dict.fromkeys(targets, inner.value)
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and _own_attribute(inner):
            yield inner.attr, whole.get(inner)


def _row(node: ast.AST) -> int:
    row: int = getattr(node, "lineno", 0)
    return row


def _own_attribute(target: ast.expr) -> str:
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        return target.attr
    return ""
