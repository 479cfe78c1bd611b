"""How often each rule found something, the most frequent first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from lightlint.finding import Finding
from lightlint.reports.paint import TIER_STYLES, Span, draw


def render(findings: Sequence[Finding], colour: bool = False) -> str:
    """A row for each rule: count, code, `[*]` where some have a fix, name."""
    return draw(_spans(findings), colour)


def render_json(findings: Sequence[Finding]) -> str:
    """The same as a list of objects."""
    rows = [
        {
            "code": finding.code,
            "name": finding.name,
            "severity": finding.tier.value,
            "count": count,
            "fixable_count": fixable,
        }
        for finding, count, fixable in _rows(findings)
    ]
    return json.dumps(rows, indent=2) + "\n"


def _spans(findings: Sequence[Finding]) -> Iterator[Span]:
    rows = _rows(findings)
    width = max((len(str(count)) for _, count, _ in rows), default=0)
    for finding, count, fixable in rows:
        yield f"{count:>{width}}  ", "bold"
        yield finding.code, TIER_STYLES[finding.tier]
        yield f"  {'[*]' if fixable else '[ ]'} {finding.name}\n", ""


def _rows(findings: Sequence[Finding]) -> list[tuple[Finding, int, int]]:
    """One finding of each rule, how many there are and how many of them have a fix."""
    counts = Counter(finding.code for finding in findings)
    fixable = Counter(finding.code for finding in findings if finding.fix)
    examples = {finding.code: finding for finding in findings}
    ordered = sorted(counts, key=lambda code: (-counts[code], code))
    return [(examples[code], counts[code], fixable[code]) for code in ordered]
