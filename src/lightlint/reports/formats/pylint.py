"""Pylint's line a finding, which many tools read: `file.py:12: [LL502] message`."""

from __future__ import annotations

from collections.abc import Sequence

from lightlint.finding import Finding
from lightlint.reports.paint import printable


def render(findings: Sequence[Finding], colour: bool = False) -> str:
    """The findings by file and place. `colour` is taken for the sake of the other reports and changes nothing."""
    return "".join(f"{_line(finding)}\n" for finding in sorted(findings, key=lambda finding: finding.sort_key))


def _line(finding: Finding) -> str:
    cell = "" if finding.cell is None else f" (cell {finding.cell})"
    message = f"{printable(finding.message)}{cell}"
    return f"{printable(finding.filename)}:{finding.location.row}: [{finding.code}] {message}"
