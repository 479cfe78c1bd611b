"""Where Python text nests too deeply: libcst's parser, which recurses in C, ends the process there."""

from __future__ import annotations

import re
from functools import cache

from lightlint.sources.lexical import TOKENS

# libcst 1.8 parses 1,000 links in a stack of 8 MB with room to spare and overflows it before 10,000.
DEEPEST = 1_000
_BRACKET = 2  # each costs the parser a round through all levels of precedence
_STOP = re.compile(r"[()\[\]{}]|(?<!\\)(?<!\\\r)\n")
_ELIF = re.compile(r"^[ \t]*elif\b", re.MULTILINE)


@cache  # few files hold a line that is long enough to be looked at in pieces
def _piece() -> re.Pattern[str]:
    return re.compile(
        TOKENS
        + r"""
        | (?P<separator> [,;] )
        | (?P<link> \b(?:and|or|not|in|is|if|else|lambda|await)\b | [-+~] | [*/%@&|^<>=!]+ | \. )
        """,
        re.VERBOSE,
    )


def too_deep(text: str) -> int | None:
    """Offset where an expression, or a chain of `elif`, nests deeper than can be parsed; None where nothing does.

    A bound from above: operators, attributes, calls and adjacent strings between two commas count as one inside the
    other, which in left-associative chains is how they are parsed.
    """
    branches = [match.start() for _, match in zip(range(DEEPEST + 1), _ELIF.finditer(text), strict=False)]
    if len(branches) > DEEPEST:
        return branches[-1]
    return _exactly(text) if _may_be(text) else None


def _may_be(text: str) -> bool:
    """Whether a logical line is long enough; brackets in strings are counted too, which can only make lines longer."""
    start = depth = 0
    for match in _STOP.finditer(text):
        stop = match[0]
        if stop in "([{":
            depth += 1
        elif stop != "\n":
            depth = max(0, depth - 1)
        elif not depth:
            if match.start() - start > DEEPEST:
                return True
            start = match.end()
    return len(text) - start > DEEPEST


def _exactly(text: str) -> int | None:
    counts = [0]
    total = 0
    for piece in _piece().finditer(text):
        match piece.lastgroup:
            case "open":
                counts[-1] += 1
                counts.append(0)
                total += 1 + _BRACKET
            case "close":
                total -= counts.pop() + _BRACKET if len(counts) > 1 else 0
            case "link" | "string":
                counts[-1] += 1
                total += 1
            case "separator":
                total, counts[-1] = total - counts[-1], 0
            case "line_end" if len(counts) == 1:
                total, counts[0] = 0, 0
        if total > DEEPEST:
            return piece.start()
    return None
