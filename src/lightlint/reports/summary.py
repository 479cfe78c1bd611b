"""The lines below a report: counts by tier, what a fix would repair, what is not shown."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from lightlint.finding import Applicability, Finding, Tier
from lightlint.reports.paint import TIER_STYLES, Span, draw, printable


def render(findings: Sequence[Finding], *, hidden: int, files: int, left: bool = False, colour: bool = False) -> str:
    """The summary of a run.

    Args:
        findings: those that were listed.
        hidden: how many notes were not.
        files: how many files were looked at.
        left: the findings are what fixes left.
        colour: draw for a terminal.
    """
    return draw(_spans(findings, hidden, files, left), colour)


def render_fixed(fixed: Sequence[tuple[str, Sequence[str]]], *, would: bool = False, colour: bool = False) -> str:
    """What was repaired, or with `would` what a fix would repair.

    Args:
        fixed: file names, each with the codes of its repaired findings, one a finding.
        would: nothing was written.
        colour: draw for a terminal.
    """
    return draw(_fixed_spans(fixed, "Would fix" if would else "Fixed"), colour)


def render_strangers(strangers: Sequence[tuple[str, str]], *, colour: bool = False) -> str:
    """Which frameworks were met that no rule knows, so that nobody takes silence about them for praise.

    Args:
        strangers: files, and the frameworks that they import.
        colour: draw for a terminal.
    """
    files: dict[str, list[str]] = {}
    for filename, name in strangers:
        files.setdefault(name, []).append(filename)
    return draw(_stranger_spans(files), colour)


def render_known(number: int) -> str:
    """How many findings the baseline knows."""
    return f"{counted(number, 'finding')} of the baseline not shown.\n" if number else ""


def render_newer(files: Sequence[str], *, colour: bool = False) -> str:
    """Which files the Python that runs lightlint cannot read, so that rules asked the text alone.

    Args:
        files: their names.
        colour: draw for a terminal.
    """
    return draw(_newer_spans(files), colour)


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _spans(findings: Sequence[Finding], hidden: int, files: int, left: bool) -> Iterator[Span]:
    tiers = Counter(finding.tier for finding in findings)
    if findings:
        yield "Left: " if left else "Found ", ""
        for index, tier in enumerate(tier for tier in Tier if tiers[tier]):
            yield ", " if index else "", ""
            yield counted(tiers[tier], tier.value), TIER_STYLES[tier]
    else:
        yield f"No findings{' left' if left else ''}", "bold green"
    yield f" in {counted(files, 'file')}.\n", ""
    yield from _fixable(findings)
    if hidden:
        yield f"{counted(hidden, 'note')} not shown; --notes lists {'it' if hidden == 1 else 'them'}.\n", ""


def _stranger_spans(files: Mapping[str, Sequence[str]]) -> Iterator[Span]:
    for name, where in sorted(files.items()):
        place = printable(where[0]) if len(where) == 1 else counted(len(where), "file")
        yield f"{name} ({place}) is not known to lightlint: what it does with a model was not looked at.\n", ""


def _newer_spans(files: Sequence[str]) -> Iterator[Span]:
    if files:
        place = printable(files[0]) if len(files) == 1 else counted(len(files), "file")
        version = ".".join(map(str, sys.version_info[:2]))
        yield (
            f"Python {version}, which runs lightlint, cannot read {place}: what the code does was not followed. "
            "Install lightlint in a newer Python.\n",
            "",
        )


def _fixable(findings: Sequence[Finding]) -> Iterator[Span]:
    fixes = Counter(finding.fix.applicability for finding in findings if finding.fix)
    safe, unsafe = fixes[Applicability.SAFE], fixes[Applicability.UNSAFE]
    if safe and unsafe:
        yield f"{safe} can be repaired with --fix, {unsafe} more with --fix --unsafe-fixes.\n", ""
    elif safe or unsafe:
        yield f"{safe or unsafe} can be repaired with --fix{'' if safe else ' --unsafe-fixes'}.\n", ""


def _fixed_spans(fixed: Sequence[tuple[str, Sequence[str]]], verb: str) -> Iterator[Span]:
    total = sum(len(codes) for _, codes in fixed)
    if not total:
        return
    yield f"{verb} {counted(total, 'finding')} in {counted(len(fixed), 'file')}:\n", "bold"
    for filename, codes in fixed:
        each = ", ".join(f"{number} x {code}" for code, number in sorted(Counter(codes).items()))
        yield f"  {printable(filename)}: {each}\n", ""
