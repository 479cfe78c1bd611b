"""Text to a libcst tree, or to an error with its place."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lightlint.sources.source import Source
from lightlint.syntax import syntax_of

if TYPE_CHECKING:
    import libcst as cst

_RECURSION = 5_000  # Python frames, for trees as deep as `too_deep` lets through; libcst writes code with three a level


class UnparsableError(Exception):
    """Text that is no Python libcst knows; `offset` is where it stops being it."""

    def __init__(self, offset: int, message: str) -> None:
        self.offset, self.message = offset, message


def parse(source: Source) -> cst.Module:
    """The libcst tree of a source.

    Raises:
        UnparsableError: the text is no Python that libcst knows.
    """
    import libcst as cst

    with no_collection(), _unvalidated(cst.CSTNode):
        try:
            return cst.parse_module(source.text)
        except cst.ParserSyntaxError as error:
            raise _unparsable(source, error) from None
        except RecursionError:
            raise UnparsableError(0, "expressions nested too deeply to be parsed") from None


def _unparsable(source: Source, error: cst.ParserSyntaxError) -> UnparsableError:
    """The error in Python's own words and at its place, where it refuses the text, too: libcst lists grammar tokens."""
    row, column = error.raw_line, error.raw_column
    message = " ".join(error.message.split()).removeprefix("parser error: ")
    try:
        syntax_of(source.text)
    except SyntaxError as own:
        row, column, message = own.lineno or 1, (own.offset or 1) - 1, own.msg
    except (ValueError, RecursionError, MemoryError):
        pass
    start = source.row_starts[min(row, len(source.row_starts)) - 1]
    return UnparsableError(min(start + max(0, column), len(source.text)), f"syntax error: {message}")


def parses(text: str) -> bool:
    """Whether a text is Python that libcst knows: what a fix must leave behind."""
    import libcst as cst

    try:
        cst.parse_module(text)
    except (cst.ParserSyntaxError, RecursionError):
        return False
    return True


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Enough Python frames for deep trees; the limit is put back, since others run in this process, too."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@contextmanager
def _unvalidated(nodes: Any) -> Iterator[None]:
    """Nodes that libcst does not look through as they are made: what its parser makes is valid (a tenth of the time)."""
    validate = nodes.__post_init__
    nodes.__post_init__ = _nothing
    try:
        yield
    finally:
        nodes.__post_init__ = validate


def _nothing(_: object) -> None:
    return


@contextmanager
def no_collection() -> Iterator[None]:
    """Garbage collection off: libcst makes millions of objects and no cycles (a fifth of the parse time, measured)."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
