"""Text as spans with styles, drawn plain or, by rich, in a terminal's colours."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TextIO

from lightlint.finding import Tier

Span = tuple[str, str]  # text, and a style as rich spells it ("" for none)

TIER_STYLES = {Tier.ERROR: "bold red", Tier.WARNING: "bold yellow", Tier.NOTE: "bold cyan"}

# Control characters would move the cursor or colour the rest; their pictures take one column each. Tabs are expanded.
_PICTURES = {**{code: 0x2400 + code for code in range(32) if code != 9}, 0x7F: 0x2421}


def wants_colour(stream: TextIO) -> bool:
    """Whether to colour what goes to a stream: NO_COLOR, then FORCE_COLOR, then whether a terminal reads it."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def draw(spans: Iterable[Span], colour: bool = False) -> str:
    """The spans as one text; rich is imported only for colour."""
    if not colour:
        return "".join(text for text, _ in spans)
    from rich.color import ColorSystem
    from rich.style import Style

    return "".join(Style.parse(style).render(text, color_system=ColorSystem.STANDARD) for text, style in spans)


def printable(text: str) -> str:
    """The text with control characters made visible."""
    return text.translate(_PICTURES)
