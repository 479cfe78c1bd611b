"""What Python compiles anew in every process, kept as it keeps a module's bytecode: classes' methods and regular expressions.

`dataclasses` writes the methods of each class as text: libcst's 250 node types take most of its import so, 0.15 s, and
0.06 s with their code kept. The 230 patterns of a run take 19 ms, and 1 ms with theirs (Python 3.11, libcst 1.9).
"""

from __future__ import annotations

import builtins
import dataclasses
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

from lightlint.memo.kept import read, write

_compiler: ModuleType = vars(re)["_compiler"]
_engine: Any = vars(_compiler)["_sre"]
_plain = vars(_compiler)["compile"]
_tables: dict[str, _Table] = {}


@contextmanager
def kept_code(name: str) -> Iterator[None]:
    """Let the classes and patterns that are made meanwhile take their code from the table of a name, where it is there.

    `dataclasses` calls the built-in `exec` with each method's text, and `re` the `compile` of its `_compiler` with each
    pattern's; others stand in for them. Where a later Python calls something else, nothing is kept and nothing is lost.
    """
    table = _tables.setdefault(name, _Table(name))
    with _standing_in(dataclasses, "exec", table.execute), _standing_in(_compiler, "compile", table.pattern):
        yield


def save() -> None:
    """Keep what is new."""
    for table in _tables.values():
        table.save()


@contextmanager
def _standing_in(module: ModuleType, name: str, stand_in: Any) -> Iterator[None]:
    names = vars(module)
    before = {name: names[name]} if name in names else {}
    names[name] = stand_in
    try:
        yield
    finally:
        del names[name]
        names.update(before)


class _Table:
    """Methods' code by their text, and what makes a pattern by its text and flags; read when first asked."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._new = False
        self._read = False
        self._codes: dict[str, CodeType] = {}
        self._patterns: dict[tuple[Any, int], tuple[Any, ...]] = {}

    def execute(self, text: str, *namespaces: dict[str, Any]) -> None:
        """What `exec` does."""
        self._fill()
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = compile(text, "<string>", "exec")
            self._new = True
        builtins.exec(code, *namespaces)

    def pattern(self, text: Any, flags: int = 0) -> Any:
        """What `re._compiler.compile` does."""
        self._fill()
        made = self._patterns.get((text, int(flags)))
        if made is None:
            return self._compiled(text, int(flags))
        return _engine.compile(*made)

    def _compiled(self, text: Any, flags: int) -> Any:
        """A new pattern, with its code noted on its way to the engine."""

        def noted(pattern: Any, flags_of: int, code: list[int], *rest: Any) -> Any:
            if pattern is not None and not flags & re.DEBUG:
                self._patterns[text, flags] = (pattern, int(flags_of), [int(each) for each in code], *rest)
                self._new = True
            return _engine.compile(pattern, flags_of, code, *rest)

        with _standing_in(_compiler, "_sre", SimpleNamespace(**{**vars(_engine), "compile": noted})):
            return _plain(text, flags)

    def _fill(self) -> None:
        if not self._read:
            self._read = True
            self._codes, self._patterns = read(self._name) or ({}, {})

    def save(self) -> None:
        """Write the table, if a code is new."""
        if self._new:
            write(self._name, (self._codes, self._patterns))
        self._new = False
