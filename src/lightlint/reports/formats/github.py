"""Annotations for GitHub Actions, as the log of a job gives them:
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#setting-a-notice-message
"""

from __future__ import annotations

from collections.abc import Sequence

from lightlint.finding import Finding, Tier
from lightlint.reports.place import ordered

_COMMANDS = {Tier.ERROR: "error", Tier.WARNING: "warning", Tier.NOTE: "notice"}


def render(findings: Sequence[Finding], colour: bool = False) -> str:
    """The findings by file and place. `colour` is taken for the sake of the other reports and changes nothing."""
    return "".join(f"{_command(finding)}\n" for finding in ordered(findings))


def _command(finding: Finding) -> str:
    """One command; rows of a notebook are those of its cell, of which GitHub knows nothing, so the message tells them."""
    start, end = finding.location, finding.end_location
    told = {"title": f"lightlint ({finding.code} {finding.name})", "file": finding.filename}
    where = ""
    if finding.cell is None:
        told |= {"line": str(start.row), "endLine": str(end.row)}
        if start.row == end.row:  # GitHub takes columns of one row only
            told |= {"col": str(start.column), "endColumn": str(end.column)}
    else:
        where = f"cell {finding.cell}, row {start.row}: "
    properties = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in told.items())
    return f"::{_COMMANDS[finding.tier]} {properties}::{_escaped(f'{finding.code} {where}{finding.message}')}"


def _escaped(text: str, also: str = "") -> str:
    for character in ("%", "\r", "\n", *also):
        text = text.replace(character, f"%{ord(character):02X}")
    return text
