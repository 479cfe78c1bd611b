"""How often each rule found something, the most frequent first, and what took how long."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from lightlint.clock import STAGES, Spent
from lightlint.finding import Finding
from lightlint.reports.paint import TIER_STYLES, Span, draw

_SLOWEST = 10  # rules whose time is told


def render(findings: Sequence[Finding], colour: bool = False, spent: Spent = ()) -> str:
    """A row for each rule: count, code, `[*]` where some have a fix, name; below it the stages and the slowest rules."""
    return draw([*_spans(findings), *_times(dict(spent))], colour)


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


def _times(seconds: Mapping[str, float]) -> Iterator[Span]:
    """Seconds of each stage and of the rules that took most; a fact that several rules use counts for the first."""
    if not seconds:
        return
    rules = sorted(seconds.keys() - set(STAGES), key=lambda name: (-seconds[name], name))
    rows = [(name, seconds.get(name, 0.0)) for name in STAGES]
    rows.append((f"{len(rules)} rules, of these", sum(seconds[name] for name in rules)))
    rows += [(f"  {name}", seconds[name]) for name in rules[:_SLOWEST]]
    yield "\n", ""
    for name, value in rows:
        yield f"{value:8.3f} s", "bold"
        yield f"  {name}\n", ""


def _rows(findings: Sequence[Finding]) -> list[tuple[Finding, int, int]]:
    """One finding of each rule, how many there are and how many of them have a fix."""
    counts = Counter(finding.code for finding in findings)
    fixable = Counter(finding.code for finding in findings if finding.fix)
    examples = {finding.code: finding for finding in findings}
    ordered = sorted(counts, key=lambda code: (-counts[code], code))
    return [(examples[code], counts[code], fixable[code]) for code in ordered]
