"""Where a finding is, as people and editors read it."""

from __future__ import annotations

from collections.abc import Iterable

from lightlint.finding import Finding
from lightlint.reports.paint import printable


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by file and place."""
    return sorted(findings, key=lambda finding: finding.sort_key)


def place(finding: Finding) -> str:
    """`file.py:12:5`, or `nb.ipynb:cell 3:2:5` in a notebook."""
    return f"{printable(finding.filename)}:{place_in_file(finding)}"


def place_in_file(finding: Finding) -> str:
    """`12:5`, or `cell 3:2:5` in a notebook."""
    cell = "" if finding.cell is None else f"cell {finding.cell}:"
    return f"{cell}{finding.location.row}:{finding.location.column}"


def with_cell(finding: Finding) -> str:
    """The message, with the cell of a notebook behind it, for formats that know files and rows only."""
    return finding.message if finding.cell is None else f"{finding.message} (cell {finding.cell})"
