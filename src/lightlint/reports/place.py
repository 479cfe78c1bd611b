"""Where a finding is, as people and editors read it."""

from __future__ import annotations

from lightlint.finding import Finding
from lightlint.reports.paint import printable


def place(finding: Finding) -> str:
    """`file.py:12:5`, or `nb.ipynb:cell 3:2:5` in a notebook."""
    cell = "" if finding.cell is None else f"cell {finding.cell}:"
    return f"{printable(finding.filename)}:{cell}{finding.location.row}:{finding.location.column}"
