"""Logical lines of Python text, found without parsing it: also in text with errors, or newer syntax than the interpreter's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

TOKENS = r"""
      (?P<comment> \#[^\r\n]* )
    | (?P<string>
          \"\"\" [^"\\]* (?: (?: \\[\s\S] | "(?!"") ) [^"\\]* )* (?: \"\"\" | \Z )
        | '''    [^'\\]* (?: (?: \\[\s\S] | '(?!'') ) [^'\\]* )* (?: '''    | \Z )
        | "[^"\\\r\n]* (?: \\(?:\r\n|[\s\S]) [^"\\\r\n]* )* "
        | '[^'\\\r\n]* (?: \\(?:\r\n|[\s\S]) [^'\\\r\n]* )* '
      )
    | (?P<open>  [(\[{] )
    | (?P<close> [)\]}] )
    | (?P<joint> \\(?:\r\n|\r|\n) )
    | (?P<line_end> \r\n|\r|\n )
"""


@cache  # compiled where a file has comments for lightlint, or is deeply nested: most have and are neither
def _token() -> re.Pattern[str]:
    return re.compile(TOKENS, re.VERBOSE)


_BLANK = re.compile(r"[ \t\f]*(?:[#\r\n]|\Z)")


@dataclass(frozen=True, slots=True)
class LogicalLine:
    """Rows that form one line to Python's grammar: a simple statement, a compound statement's header, or no code.

    `start` is the offset of the first row, `end` that of the line end behind the last, `comments` the ranges of
    the comments in between.
    """

    start: int
    end: int
    comments: tuple[tuple[int, int], ...]
    is_code: bool


def logical_line(text: str, start: int) -> LogicalLine:
    """The logical line that begins at `start`, which must be the first character of a row.

    Quotes are paired as before Python 3.12: an f-string that repeats its own quotes inside a replacement field
    counts as several strings, which ends lines at the same place unless the field holds `#` or brackets in quotes.
    """
    depth = 0
    comments: list[tuple[int, int]] = []
    end = len(text)
    for token in _token().finditer(text, start):
        match token.lastgroup:
            case "comment":
                comments.append(token.span())
            case "open":
                depth += 1
            case "close":
                depth = max(0, depth - 1)
            case "line_end" if not depth:
                end = token.start()
                break
    return LogicalLine(start, end, tuple(comments), not _BLANK.match(text, start))


def logical_lines(text: str) -> Iterator[LogicalLine]:
    """Every logical line of `text` in order, blank and comment lines included."""
    start = 0
    while True:
        line = logical_line(text, start)
        yield line
        if line.end == len(text):
            return
        start = line.end + (2 if text.startswith("\r\n", line.end) else 1)
