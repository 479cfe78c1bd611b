"""A file's findings below its name, with tier and whether they can be repaired."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from lightlint.finding import Applicability, Finding
from lightlint.reports.paint import TIER_STYLES, Span, draw, printable
from lightlint.reports.place import ordered, place_in_file


def render(findings: Sequence[Finding], colour: bool = False) -> str:
    """The findings by file and place."""
    by_file = groupby(ordered(findings), key=lambda finding: finding.filename)
    return draw((span for name, found in by_file for span in _group(name, list(found))), colour)


def _group(filename: str, findings: Sequence[Finding]) -> Iterator[Span]:
    yield f"{printable(filename)}:\n", "bold"
    places = [place_in_file(finding) for finding in findings]
    width = max(map(len, places))
    for place, finding in zip(places, findings, strict=True):
        yield f"  {place:<{width}} ", ""
        yield finding.code, TIER_STYLES[finding.tier]
        yield f" {finding.tier.value}{_repair(finding)}: {printable(finding.message)}\n", ""
    yield "\n", ""


def _repair(finding: Finding) -> str:
    if finding.fix is None:
        return ""
    return " [*]" if finding.fix.applicability is Applicability.SAFE else " [unsafe fix]"
