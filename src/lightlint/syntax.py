"""What Python's own parser makes of a text."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast


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
