"""What Python's own parser makes of a text, and the rows that it counts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast


_ROW = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")  # Python's own lines: `str.splitlines` knows more line ends
_ODD_ROWS = "\v\f\x1c\x1d\x1e"  # what `str.splitlines` takes for line ends, too, among ASCII


def rows_of(text: str) -> list[str]:
    """The rows of a text as Python counts them, with their ends."""
    plain = text.isascii() and not any(each in text for each in _ODD_ROWS)
    return text.splitlines(keepends=True) if plain else _ROW.findall(text)


@lru_cache(maxsize=2)  # a file's own tree is asked for by its needs, its sketch and its summary
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
