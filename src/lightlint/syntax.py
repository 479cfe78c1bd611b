"""What Python's own parser makes of a text, and the rows that it counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

# fields of nodes of `ast` that hold none, or none that anybody asks for
_NO_NODES = {
    "arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "level", "module", "op", "ops", "simple",
    "type_comment", "type_ignores",
}  # fmt: skip

_ROW = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")  # Python's own lines: `str.splitlines` knows more line ends
_ODD_ROWS = "\v\f\x1c\x1d\x1e"  # what `str.splitlines` takes for line ends, too, among ASCII


def rows_of(text: str) -> list[str]:
    """The rows of a text as Python counts them, with their ends."""
    plain = text.isascii() and not any(each in text for each in _ODD_ROWS)
    return text.splitlines(keepends=True) if plain else _ROW.findall(text)


# a file's tree is asked for by its needs, its sketch, its summary, and soon by those that import it
@lru_cache(maxsize=64)
def syntax_of(text: str) -> ast.Module:
    """What `ast` makes of a text, to be read only; `ast` is imported when first asked.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it refuses the text.
    """
    import ast
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def tree_of(text: str) -> ast.Module | None:
    """As `syntax_of`, None where it refuses the text."""
    try:
        return syntax_of(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def walked(root: ast.AST, closed: Set[type] = frozenset()) -> Iterator[ast.AST]:
    """As `ast.walk`, at a third of its cost; operators, and whether a name is read or set, have no nodes here.

    Of nodes of `closed` types inside nothing is shown but they themselves.
    """
    from ast import AST

    found = [root]
    for node in found:
        if type(node) in closed and node is not root:
            yield node
            continue
        for name in _FIELDS[type(node)]:
            value = getattr(node, name, None)
            if type(value) is list:
                if value:
                    found.extend([each for each in value if isinstance(each, AST)])
            elif isinstance(value, AST):
                found.append(value)
        yield node


class _Fields(dict[type, tuple[str, ...]]):
    """The fields of a type of node that may hold others."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        named: tuple[str, ...] = () if kind.__name__ == "Constant" else kind._fields  # type: ignore[attr-defined]
        self[kind] = tuple(each for each in named if each not in _NO_NODES)
        return self[kind]


_FIELDS = _Fields()


def statements_in(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements with all inside them; what stands in expressions holds none."""
    stack = [*body]
    while stack:
        statement = stack.pop()
        yield statement
        inside = getattr(statement, "body", None)
        if inside is not None:  # of most statements nothing more need be asked
            stack += inside
            for name in ("orelse", "finalbody"):
                stack += getattr(statement, name, ())
            for handler in getattr(statement, "handlers", ()):
                stack += handler.body
        for case in getattr(statement, "cases", ()):
            stack += case.body
