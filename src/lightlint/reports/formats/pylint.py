"""Pylint's line a finding, which many tools read: `file.py:12: [LL502] message`."""

from __future__ import annotations

from collections.abc import Sequence

from lightlint.finding import Finding
from lightlint.reports.paint import printable
from lightlint.reports.place import ordered, with_cell


def render(findings: Sequence[Finding], colour: bool = False) -> str:
    """The findings by file and place. `colour` is taken for the sake of the other reports and changes nothing."""
    return "".join(f"{_line(finding)}\n" for finding in ordered(findings))


def _line(finding: Finding) -> str:
    return f"{printable(finding.filename)}:{finding.location.row}: [{finding.code}] {printable(with_cell(finding))}"
