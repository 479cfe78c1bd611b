"""The report for people: every finding with its rows, the span marked, and what its fix would do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lightlint.finding import Applicability, Finding
from lightlint.reports.frame import GUTTER, frame
from lightlint.reports.paint import TIER_STYLES, Span, draw, printable
from lightlint.reports.place import ordered, place

_HOW = {Applicability.SAFE: "--fix", Applicability.UNSAFE: "--fix --unsafe-fixes"}


def render(findings: Sequence[Finding], colour: bool = False) -> str:
    """The findings by file and place, a blank line behind each."""
    return draw((span for finding in ordered(findings) for span in _spans(finding)), colour)


def _spans(finding: Finding) -> Iterator[Span]:
    style = TIER_STYLES[finding.tier]
    yield finding.code, style
    yield f" [{finding.name}] ", ""
    yield finding.tier.value, style
    yield f": {printable(finding.message)}\n", "bold"
    excerpt = finding.excerpt if finding.excerpt and finding.excerpt.lines else None
    margin = " " * (len(str(excerpt.row + len(excerpt.lines) - 1)) if excerpt else 1)
    yield f"{margin}--> ", GUTTER
    yield f"{place(finding)}\n", ""
    if excerpt:
        yield from frame(finding, excerpt)
    if finding.fix:
        yield f"{margin} = ", GUTTER
        yield "help", "bold green"
        yield f": {printable(finding.fix.message)} (fix available with {_HOW[finding.fix.applicability]})\n", ""
    yield "\n", ""
