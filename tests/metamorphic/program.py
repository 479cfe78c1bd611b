"""A program as rewrites see it: trees whose statements know which statement of the original they come from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, count

from .quote import statements

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
_BLOCKS = ("body", "orelse", "finalbody")
_PARTS = ("body", "handlers", "orelse", "finalbody", "cases")
ADDED = -1


@dataclass(frozen=True)
class Place:
    """A statement in its block, with the blocks around it up to the scope it runs in (outermost first)."""

    scope: Scope
    path: tuple[tuple[list[ast.stmt], ast.stmt], ...]
    """The blocks of the scope that lead to the statement, outermost first, each with its statement on the way."""
    owner: ast.ClassDef | None
    """The class whose method the scope is."""
    outer: tuple[Scope, ...]
    """The scopes around the scope, the module first."""

    @property
    def statement(self) -> ast.stmt:
        return self.path[-1][1]

    @property
    def block(self) -> list[ast.stmt]:
        return self.path[-1][0]


class NotAlikeError(Exception):
    """A rewrite cannot be made of this program without a risk that it does something else."""


@dataclass
class Program:
    """The file that is rewritten, the files that a rewrite adds, and where it is to act.

    `wanted`: the origins of the statements to change (None: all); `alone`: no other file imports this one;
    `names`: every identifier that the file had at first; `given`: those that rewrites took for what they add.
    """

    name: str
    tree: ast.Module
    names: frozenset[str]
    wanted: frozenset[int] | None = None
    alone: bool = True
    added: dict[str, ast.Module] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)

    def wants(self, statement: ast.AST) -> bool:
        number = origin(statement)
        return number != ADDED and (self.wanted is None or number in self.wanted)

    def wanting(self, kinds: type[ast.stmt]) -> Program:
        """The program with those statements of a kind wanted that are wanted, or hold a wanted one."""
        if self.wanted is None:
            return self
        near = {
            origin(each)
            for each in ast.walk(self.tree)
            if isinstance(each, kinds) and any(isinstance(n, ast.stmt) and self.wants(n) for n in ast.walk(each))
        }
        return replace(self, wanted=frozenset(near))

    def fresh(self, stem: str) -> str:
        """A name that the program does not have, another each time: one name for many values is another program."""
        taken = self.names | self.given
        name = next(name for name in chain([stem], (f"{stem}_{n}" for n in count(2))) if name not in taken)
        self.given.add(name)
        return name

    def ask(self, template: str) -> None:
        """Have the statements of a template stand at the top of the file, behind its imports, once.

        Raises:
            NotAlikeError: the file uses a name of theirs for something else.
        """
        wished = statements(template)
        there = {ast.dump(each) for each in self.tree.body}
        new = [each for each in wished if ast.dump(each) not in there]
        if {name for each in new for name in _made_by(each)} & self.names:
            raise NotAlikeError(template)
        for each in new:
            derive(each, ADDED)
        at = behind_future(self.tree) if isinstance(wished[0], IMPORTS) else behind_imports(self.tree)
        self.tree.body[at:at] = new


def _made_by(statement: ast.stmt) -> set[str]:
    if isinstance(statement, IMPORTS):
        return {alias.asname or alias.name for alias in statement.names}
    if isinstance(statement, DEFINITIONS):
        return {statement.name}
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def parse(name: str, text: str, *, alone: bool = True) -> Program:
    """A program of the text, its statements numbered in the order of the text."""
    tree = ast.parse(text)
    for number, statement in enumerate(in_order(tree)):
        statement.origin = number  # type: ignore[attr-defined]
    return Program(name, tree, _names_of(text), alone=alone)


@lru_cache(1)  # a program is parsed anew for each of its rewrites
def _names_of(text: str) -> frozenset[str]:
    return frozenset(names_in(ast.parse(text)))


def in_order(tree: ast.AST) -> Iterator[ast.stmt]:
    """All statements below a node in the order of the text."""
    for name in _PARTS:
        held = getattr(tree, name, None)
        for each in held if isinstance(held, list) else ():
            if isinstance(each, ast.stmt):
                yield each
            yield from in_order(each)


def origin(statement: ast.AST) -> int:
    return getattr(statement, "origin", ADDED)


def derive(made: ast.AST, number: int) -> None:
    """Say of the statements that a rewrite made which original one they come from."""
    for node in ast.walk(made):
        if isinstance(node, ast.stmt) and not hasattr(node, "origin"):
            node.origin = number  # type: ignore[attr-defined]


def names_in(tree: ast.AST) -> set[str]:
    """Every identifier in a tree."""
    found: set[str] = set()
    for node in ast.walk(tree):
        found.update(
            value
            for value in (getattr(node, key, None) for key in ("id", "name", "arg", "attr", "asname"))
            if isinstance(value, str)
        )
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
    return found


def behind_future(tree: ast.Module) -> int:
    """The first place behind the docstring and what Python wants first."""
    at = 0
    while at < len(tree.body) and (
        (at == 0 and is_docstring(tree.body[0]))
        or (isinstance(tree.body[at], ast.ImportFrom) and tree.body[at].module == "__future__")
    ):
        at += 1
    return at


def behind_imports(tree: ast.Module) -> int:
    """The first place behind the imports that the file opens with."""
    at = behind_future(tree)
    while at < len(tree.body) and isinstance(tree.body[at], IMPORTS):
        at += 1
    return at


def is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


Change = Callable[[Place], Sequence[ast.stmt] | None]


def change_statements(program: Program, change: Change) -> None:
    """Replace every wanted statement by what `change` makes of it (None: nothing), inner ones first.

    Statements of class bodies are left alone: a name more there is an attribute more.
    """
    _change_block(program, change, program.tree.body, Place(program.tree, (), None, ()))


def _change_block(program: Program, change: Change, block: list[ast.stmt], holder: Place) -> None:
    result: list[ast.stmt] = []
    scope = holder.scope
    for statement in list(block):
        place = replace(holder, path=(*holder.path, (block, statement)))
        if isinstance(statement, DEFINITIONS):
            owner = scope if isinstance(statement, FUNCTIONS) and isinstance(scope, ast.ClassDef) else None
            _change_block(program, change, statement.body, Place(statement, (), owner, (*holder.outer, scope)))
        else:
            for inner in blocks(statement):
                _change_block(program, change, inner, place)
        made = None
        if program.wants(statement) and not isinstance(scope, ast.ClassDef) and not is_docstring(statement):
            made = change(place)
        for each in made or ():
            derive(each, origin(statement))
        result.extend([statement] if made is None else made)
    block[:] = result


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement that run in the scope of the statement."""
    if isinstance(statement, DEFINITIONS):
        return
    for name in _BLOCKS:
        block = getattr(statement, name, None)
        if block:
            yield block
    for handler in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield handler.body


def scopes(tree: ast.Module) -> Iterator[Scope]:
    """The module and all functions and classes, outermost first."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, *DEFINITIONS)):
            yield node
