"""What a file holds besides training: functions and methods that no rehearsal of it comes to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from lightlint.explore.parsed import Words, functions_of


class Other(NamedTuple):
    """A function, or a method of a class, with the words in it."""

    name: str
    cls: str
    node: ast.AST
    words: set[str]


class Others:
    """The functions and methods of a file, those that no other names first."""

    def __init__(self, tree: ast.Module, words: Words) -> None:
        self._tree, self._words = tree, words
        classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
        rooms = [("", tree.body), *((each.name, each.body) for each in classes)]
        found = [(cls, each) for cls, body in rooms for each in functions_of(body)]
        inner = {name for _, each in found for name in words.said(each.node).own - {each.name}}
        found.sort(key=lambda each: each[1].name in inner)
        self._all = [Other(each.name, cls, each.node, self._said_in(each.node)) for cls, each in found]
        self._tables = [table for _, body in rooms for table in self._tables_of(body)]

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
        return any(not self._said_in(each).isdisjoint(words) for each in plain)

    def _said_in(self, node: ast.AST) -> set[str]:
        """The names in some code, also those that stand in a text."""
        said = self._words.said(node)
        return said.names | said.texts

    def _tables_of(self, body: list[ast.stmt]) -> Iterator[tuple[str, set[str]]]:
        """The names that a module or class gives values, each with the names in its value."""
        for each in body:
            if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None:
                targets = each.targets if isinstance(each, ast.Assign) else [each.target]
                yield from ((t.id, self._said_in(each.value)) for t in targets if isinstance(t, ast.Name))
