"""What a file holds besides training: functions and methods that no rehearsal of it comes to."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lightlint.explore.parsed import functions_of, other_names, own_names, words_in

_LONGEST_NAME = 80


class Other(NamedTuple):
    """A function, or a method of a class, with the words in it."""

    name: str
    cls: str
    node: ast.AST
    words: set[str]


class Others:
    """The functions and methods of a file, those that no other names first."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree, self._imported = tree, other_names(tree)
        classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
        rooms = [("", tree.body), *((each.name, each.body) for each in classes)]
        found = [(cls, each) for cls, body in rooms for each in functions_of(body)]
        inner = {name for _, each in found for name in own_names(each.node) - {each.name}}
        found.sort(key=lambda each: each[1].name in inner)
        self._all = [Other(each.name, cls, each.node, _said_in(each.node, self._imported)) for cls, each in found]
        self._tables = [table for _, body in rooms for table in _tables_of(body, self._imported)]

    def with_words(self, words: frozenset[str]) -> Iterator[Other]:
        """Those that hold one of some words, or name what holds one."""
        named = [(each.name, each.words) for each in self._all if not each.name.startswith("__")] + self._tables
        sought = set(words)
        while more := {name for name, held in named if not held.isdisjoint(sought)} - sought - {"forward"}:
            sought |= more
        yield from (each for each in self._all if not each.words.isdisjoint(sought))

    def stand_outside(self, words: frozenset[str]) -> bool:
        """Whether a statement outside all functions and classes holds one of some words."""
        frames = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        plain = (each for each in self._tree.body if not isinstance(each, frames))
        return any(not _said_in(each, self._imported).isdisjoint(words) for each in plain)


def _said_in(node: ast.AST, imported: Mapping[str, str]) -> set[str]:
    """The names in some code, also those that stand in a text."""
    texts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))
    return words_in(node, imported) | {each.rpartition(".")[2] for each in texts if len(each) < _LONGEST_NAME}


def _tables_of(body: list[ast.stmt], imported: Mapping[str, str]) -> Iterator[tuple[str, set[str]]]:
    """The names that a module or class gives values, each with the names in its value."""
    for each in body:
        if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            yield from ((t.id, _said_in(each.value, imported)) for t in targets if isinstance(t, ast.Name))
