"""The report for people: each finding with its verdict, the numbers by rank and the line that reproduces it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from lightlint.confirm.observed.observation import Observation
from lightlint.confirm.reports.report import Judged, Report
from lightlint.confirm.verdict import Number, Outcome
from lightlint.reports.paint import TIER_STYLES, Span, draw, printable, wants_colour

_STYLES = {
    Outcome.CONFIRMED: "bold red",
    Outcome.REFUTED: "bold green",
    Outcome.OPEN: "bold yellow",
}

_MOST_FILES = 10  # of the files a run wrote


def render(report: Report) -> str:
    """The verdicts, those that matter first."""
    return draw(_spans(report), wants_colour(sys.stdout))


def _spans(report: Report) -> Iterator[Span]:
    run = report.run
    yield "ran ", "bold"
    yield f"{report.command}: {run.ended}, {run.scope}\n\n", ""
    for observed in report.observed:
        yield from _observed(observed)
    order = list(Outcome)
    for judged in sorted(report.judged, key=lambda each: order.index(each.verdict.outcome)):
        yield from _judged(judged)
    for who, stack in (run.stacks or {}).items():
        yield f"{who} stood in\n", "bold"
        yield f"{printable_lines(stack)}\n", ""
    yield from _told(report)
    if report.judged:
        yield "again: ", "bold"
        yield f"{report.reproduce}\n", ""
    else:
        yield "no finding to confirm\n", ""


def _told(report: Report) -> Iterator[Span]:
    """What holds for the run as a whole."""
    for note in report.run.notes:
        yield "note: ", "bold yellow"
        yield f"{printable(note)}\n", ""
    if report.run.written:
        yield "written: ", "bold"
        more = f" and {len(report.run.written) - _MOST_FILES} more" if len(report.run.written) > _MOST_FILES else ""
        yield f"{printable(', '.join(report.run.written[:_MOST_FILES]))}{more}\n", ""
    if report.determinism is not None:
        yield "determinism: ", "bold"
        yield f"{printable(report.determinism.sentence)}\n", ""
        for operation in report.determinism.operations:
            yield f"    not deterministic: {printable(operation)}\n", ""


def _observed(observed: Observation) -> Iterator[Span]:
    yield f"{'fault' if observed.is_fault else 'seen':15}", "bold red" if observed.is_fault else "bold yellow"
    yield f"{printable(observed.message)}\n", "bold" if observed.is_fault else ""
    for detail in observed.details:
        yield f"  {printable(detail)}\n", ""
    yield "\n", ""


def _judged(judged: Judged) -> Iterator[Span]:
    finding, verdict = judged.finding, judged.verdict
    yield f"{verdict.outcome.value:15}", _STYLES.get(verdict.outcome, "dim")
    yield finding.code, TIER_STYLES[finding.tier]
    yield f" [{finding.name}] {judged.place}\n", ""
    yield f"  {printable(finding.message)}\n", "dim"
    yield f"  {printable(verdict.reason)}", ""
    yield f" ({verdict.scope})\n" if verdict.scope else "\n", "dim"
    for number in verdict.numbers:
        yield f"    {_number(number)}\n", ""
    yield "\n", ""


def _number(number: Number) -> str:
    where = f"rank {number.rank}: " if number.rank is not None else ""
    return f"{where}{number.what} {number.shown}"


def printable_lines(text: str) -> str:
    """A text of several lines with control characters made visible."""
    return "\n".join(printable(line) for line in text.splitlines())
