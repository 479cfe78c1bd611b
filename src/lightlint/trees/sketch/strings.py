"""Strings as they are written, which `ast` does not keep."""

from __future__ import annotations

import re
from typing import Any

from lightlint.trees.sketch import UnsketchableError, nodes

_LITERAL = re.compile(
    r"(?i:[rbuft]{0,2})(?:'''(?:[^'\\]|\\[\s\S]|'(?!''))*'''|\"\"\"(?:[^\"\\]|\\[\s\S]|\"(?!\"\"))*\"\"\""
    r"|'(?:[^'\\]|\\[\s\S])*'|\"(?:[^\"\\]|\\[\s\S])*\")"
)
_BETWEEN = re.compile(r"(?:\s|\\|#[^\r\n]*)*")  # what may stand between the parts of a joined string


def string(raw: str) -> Any:
    """A string, or several that stand side by side, which are one constant for `ast`."""
    quote = raw[-1]
    start = raw.find(quote)
    if raw.count(quote) == 2 and not raw[:start].strip("rRbBuU"):
        return nodes.STRING(raw)
    parts: list[str] = []
    place = 0
    while place < len(raw):
        found = _LITERAL.match(raw, place)
        if found is None:
            raise UnsketchableError("string")
        parts.append(found[0])
        behind = _BETWEEN.match(raw, found.end())
        place = behind.end() if behind else found.end()
    made = nodes.STRING(parts[-1])
    for each in reversed(parts[:-1]):
        made = nodes.JOINED(nodes.STRING(each), made)
    return made
