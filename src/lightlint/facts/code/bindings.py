"""What names are bound to, scope by scope: imports, assignments, loop targets, parameters, definitions."""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import libcst as cst

from lightlint.facts.code.tree import Scope, Tree
from lightlint.values.canonical import absolute


class Kind(StrEnum):
    """How a name came to be bound."""

    IMPORT = "import"
    ASSIGN = "assign"
    AUGMENT = "augment"
    LOOP = "loop"
    WITH = "with"
    EXCEPT = "except"
    PARAMETER = "parameter"
    FUNCTION = "function"
    CLASS = "class"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Binding:
    """One place that binds a name.

    `value` is the expression the name gets, or gets a part of: `path` says which (`(1,)` is the second item of a
    tuple, `(-1,)` the last; for loops and comprehensions the iterable, for `with` the context manager). For an import
    `dotted` is the full name, for a parameter `value` is its default and `annotation` its annotation.
    """

    name: str
    kind: Kind
    site: cst.CSTNode
    scope: Scope
    value: cst.BaseExpression | None = None
    path: tuple[int, ...] = ()
    dotted: str = ""
    annotation: cst.BaseExpression | None = None


def dotted_name(node: cst.CSTNode | None) -> str:
    """The source spelling of a chain of names and attributes, empty for anything else."""
    if type(node) is cst.Name:
        return node.value
    parts: list[str] = []
    while type(node) is cst.Attribute:
        parts.append(node.attr.value)
        node = node.value
    if type(node) is not cst.Name:
        return ""
    return ".".join([node.value, *reversed(parts)])


def _entered(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """The context that an `ExitStack` enters: what that gives is what `with ... as` would bind."""
    called = (
        type(value) is cst.Call and isinstance(value.func, cst.Attribute) and value.func.attr.value == "enter_context"
    )
    return value.args[0].value if called and isinstance(value, cst.Call) and len(value.args) == 1 else None


def unpacked(
    target: cst.CSTNode, value: cst.BaseExpression | None, path: tuple[int, ...] = (), *, whole: bool = False
) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression | None, tuple[int, ...]]]:
    """The names, attributes and items that an assignment's target sets, each with `value[path]` as what it gets.

    The items of a display count as values of their own, unless `whole`. The value is None for what a starred target
    gathers.
    """
    if type(target) is cst.Name or not isinstance(target, (cst.Tuple, cst.List)):
        yield target, value, path
        return
    shown = value.elements if isinstance(value, (cst.Tuple, cst.List)) and not whole and not path else ()
    elements = target.elements
    paired = len(shown) == len(elements) and all(isinstance(each, cst.Element) for each in (*shown, *elements))
    starred = False
    for number, element in enumerate(elements):
        if isinstance(element, cst.StarredElement):
            starred = True
            yield from unpacked(element.value, None)
        elif paired:
            yield from unpacked(element.value, shown[number].value)
        else:
            place = number - len(elements) if starred else number
            yield from unpacked(element.value, value, (*path, place), whole=whole)


_BINDERS: tuple[type[cst.CSTNode], ...] = (
    cst.Import, cst.ImportFrom, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor,
    cst.WithItem, cst.ExceptHandler, cst.ExceptStarHandler, cst.FunctionDef, cst.ClassDef, cst.Param,
    cst.MatchAs, cst.MatchStar, cst.MatchMapping, cst.TypeAlias,
)  # fmt: skip


class Bindings:
    """Every binding of a module.

    Args:
        tree: the module's.
        package: the dotted package the file lies in, for relative imports.
        is_beside: whether a module beside the file hides the library of that name; its names get a dot in front.
    """

    def __init__(self, tree: Tree, package: str = "", is_beside: Callable[[str], bool] = lambda _: False) -> None:
        self._tree = tree
        self._package = package
        self._is_beside = is_beside
        self._found: dict[tuple[str, int], list[Binding]] = {}

    @cached_property
    def stars(self) -> list[str]:
        """The modules of which everything is imported."""
        return [self.origin(node) for node in self._tree.all(cst.ImportFrom) if isinstance(node.names, cst.ImportStar)]

    @cached_property
    def by_scope(self) -> dict[Scope, dict[str, list[Binding]]]:
        """Bindings of each name of each scope, in source order."""
        table: dict[Scope, dict[str, list[Binding]]] = defaultdict(lambda: defaultdict(list))
        elsewhere = self._elsewhere
        for binding in self._collected:
            scope = binding.scope
            if elsewhere:
                scope = elsewhere.get((scope, binding.name), scope)
            table[scope][binding.name].append(binding)
        return table

    def lookup(self, name: cst.Name) -> list[Binding]:
        """The bindings a name can refer to: those of the nearest scope that binds it, in source order."""
        return self.lookup_in(name.value, self._tree.scope(name))

    def lookup_in(self, name: str, scope: Scope) -> list[Binding]:
        """As `lookup`, for a name written in a given scope."""
        key = (name, id(scope))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._look(name, scope)
        return found

    def _look(self, name: str, scope: Scope) -> list[Binding]:
        home = self.home(name, scope)
        return self.by_scope[home][name] if home is not None else []

    def home(self, name: str, scope: Scope) -> Scope | None:
        """The scope whose variable a name means that is written in `scope`; None for one this file does not bind."""
        for level, candidate in enumerate(self._chain(scope)):
            if level and isinstance(candidate, cst.ClassDef):
                continue  # class bodies are invisible from the functions inside them
            declared = self._elsewhere.get((candidate, name), candidate) if self._elsewhere else candidate
            if name in self.by_scope.get(declared, ()):
                return declared
            if declared is not candidate:
                return None
        return None

    def is_builtin(self, name: cst.Name) -> bool:
        """Whether a name means Python's own."""
        return hasattr(builtins, name.value) and not self.lookup(name)

    def _chain(self, scope: Scope) -> Iterator[Scope]:
        current: Scope = scope
        while True:
            yield current
            if isinstance(current, cst.Module):
                return
            current = self._tree.scope(current)

    @cached_property
    def _elsewhere(self) -> dict[tuple[Scope, str], Scope]:
        """Where the names live that a scope declares `global` or `nonlocal`."""
        module = self._tree.module
        table: dict[tuple[Scope, str], Scope] = dict.fromkeys(self._declared(cst.Global), module)
        nonlocals = self._declared(cst.Nonlocal)
        if not nonlocals:
            return table
        bound = {(each.scope, each.name) for each in self._collected}.difference(table, nonlocals)
        for scope, name in nonlocals:
            above = (each for each in self._chain(scope) if isinstance(each, (cst.FunctionDef, cst.Lambda)))
            table[scope, name] = next((each for each in above if (each, name) in bound), module)
        return table

    def _declared(self, kind: type[cst.Global] | type[cst.Nonlocal]) -> list[tuple[Scope, str]]:
        return [(self._tree.scope(node), item.name.value) for node in self._tree.all(kind) for item in node.names]

    @cached_property
    def _collected(self) -> list[Binding]:
        return list(self._collect())

    def _collect(self) -> Iterator[Binding]:
        tree = self._tree
        for node in tree.of_types(*_BINDERS):
            match node:  # the frequent ones first: libcst's abstract classes are slow where they say no
                case cst.Assign():
                    entered = _entered(node.value)
                    value, kind = (node.value, Kind.ASSIGN) if entered is None else (entered, Kind.WITH)
                    for target in node.targets:
                        yield from self._targets(target.target, value, kind)
                case cst.Param():
                    scope = next(a for a in tree.ancestors(node) if isinstance(a, (cst.FunctionDef, cst.Lambda)))
                    annotation = node.annotation.annotation if node.annotation else None
                    yield Binding(node.name.value, Kind.PARAMETER, node, scope, node.default, annotation=annotation)
                case cst.FunctionDef():
                    yield Binding(node.name.value, Kind.FUNCTION, node, tree.scope(node))
                case cst.ImportFrom():
                    yield from self._import_from(node)
                case cst.Import():
                    yield from self._import(node)
                case cst.For() | cst.CompFor():
                    yield from self._targets(node.target, node.iter, Kind.LOOP)
                case cst.ClassDef():
                    yield Binding(node.name.value, Kind.CLASS, node, tree.scope(node))
                case cst.AnnAssign(target=cst.Name() as name):
                    yield Binding(
                        name.value,
                        Kind.ASSIGN,
                        name,
                        tree.scope(name),
                        node.value,
                        annotation=node.annotation.annotation,
                    )
                case cst.AugAssign(target=cst.Name() as name):
                    yield Binding(name.value, Kind.AUGMENT, name, tree.scope(name), node.value)
                case cst.NamedExpr(target=cst.Name() as name):
                    yield Binding(name.value, Kind.ASSIGN, name, self._walrus_scope(name), node.value)
                case cst.WithItem(asname=cst.AsName() as alias):
                    yield from self._targets(alias.name, node.item, Kind.WITH)
                case (
                    cst.ExceptHandler(name=cst.AsName(name=cst.Name() as name))
                    | cst.ExceptStarHandler(name=cst.AsName(name=cst.Name() as name))
                ):
                    yield Binding(name.value, Kind.EXCEPT, name, tree.scope(name), node.type)
                case (
                    cst.MatchAs(name=cst.Name() as name)
                    | cst.MatchStar(name=cst.Name() as name)
                    | cst.MatchMapping(rest=cst.Name() as name)
                    | cst.TypeAlias(name=name)
                ):
                    yield Binding(name.value, Kind.OTHER, name, tree.scope(name))

    def _walrus_scope(self, name: cst.Name) -> Scope:
        scope = self._tree.scope(name)
        while isinstance(scope, cst.BaseComp):
            scope = self._tree.scope(scope)
        return scope

    def _targets(self, target: cst.CSTNode, value: cst.BaseExpression, kind: Kind) -> Iterator[Binding]:
        if type(target) is cst.Attribute:  # the most frequent target, and it binds no name
            return
        for leaf, source, path in unpacked(target, value, whole=kind is not Kind.ASSIGN):
            if isinstance(leaf, cst.Name):
                how = kind if source is not None else Kind.OTHER
                yield Binding(leaf.value, how, leaf, self._tree.scope(leaf), source, path)

    def _import(self, node: cst.Import) -> Iterator[Binding]:
        scope = self._tree.scope(node)
        for alias in node.names:
            full = self._unhidden(dotted_name(alias.name))
            if alias.asname is not None:
                yield Binding(dotted_name(alias.asname.name), Kind.IMPORT, alias, scope, dotted=full)
            else:
                first = dotted_name(alias.name).partition(".")[0]
                yield Binding(first, Kind.IMPORT, alias, scope, dotted=self._unhidden(first))

    def _import_from(self, node: cst.ImportFrom) -> Iterator[Binding]:
        if isinstance(node.names, cst.ImportStar):
            return
        scope = self._tree.scope(node)
        module = self.origin(node)
        for alias in node.names:
            name = dotted_name(alias.name)
            local = dotted_name(alias.asname.name) if alias.asname else name
            yield Binding(local, Kind.IMPORT, alias, scope, dotted=f"{module}.{name}")

    def origin(self, node: cst.ImportFrom) -> str:
        """The full name of the module that a `from` import names."""
        module = dotted_name(node.module)
        return absolute(module, len(node.relative), self._package) if node.relative else self._unhidden(module)

    def _unhidden(self, module: str) -> str:
        return f".{module}" if self._is_beside(module.partition(".")[0]) else module
