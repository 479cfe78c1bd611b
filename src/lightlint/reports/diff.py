"""What a fix would change, as unified diffs that `patch` takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff

from lightlint.reports.paint import Span, draw

_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # str.splitlines would also split at form feeds and their like
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def render(filename: str, before: str, after: str, colour: bool = False) -> str:
    """The diff of one file, or of one cell of a notebook."""
    return draw(_spans(filename, before, after), colour)


def _spans(filename: str, before: str, after: str) -> Iterator[Span]:
    lines = unified_diff(_LINE.findall(before), _LINE.findall(after), filename, filename)
    for number, line in enumerate(lines):
        style = "bold" if number < 2 else _STYLES.get(line[0], "")
        yield line.rstrip("\n"), style
        yield "\n" if line.endswith("\n") else "\n\\ No newline at end of file\n", ""
