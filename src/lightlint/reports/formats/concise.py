"""One line a finding: `file.py:12:5: LL502 message`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lightlint.finding import Finding
from lightlint.reports.paint import TIER_STYLES, Span, draw, printable
from lightlint.reports.place import ordered, place


def render(findings: Sequence[Finding], colour: bool = False) -> str:
    """The findings by file and place."""
    return draw((span for finding in ordered(findings) for span in _spans(finding)), colour)


def _spans(finding: Finding) -> Iterator[Span]:
    yield f"{place(finding)}: ", "bold"
    yield finding.code, TIER_STYLES[finding.tier]
    yield f" {printable(finding.message)}\n", ""
