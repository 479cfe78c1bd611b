"""The report for programs: a list of findings in ruff's shape, with severity, name and notebook cell."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lightlint.finding import Edit, Finding, Fix, Location
from lightlint.pages import all_pages
from lightlint.reports.place import ordered


def render(findings: Sequence[Finding], colour: bool = False) -> str:
    """The findings by file and place. `colour` is taken for the sake of the other reports and changes nothing."""
    return json.dumps([as_dict(finding) for finding in ordered(findings)], indent=2) + "\n"


def as_dict(finding: Finding) -> dict[str, object]:
    """A finding in the fields of the output contract: rows, columns and cells count from 1."""
    page = all_pages().get(finding.name)
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.tier.value,
        "message": finding.message,
        "filename": finding.filename,
        "cell": finding.cell,
        "location": _location(finding.location),
        "end_location": _location(finding.end_location),
        "fix": _fix(finding.fix) if finding.fix else None,
        "noqa_row": finding.noqa_row,
        "url": page.url if page else None,
    }


def _location(location: Location) -> dict[str, int]:
    return {"row": location.row, "column": location.column}


def _fix(fix: Fix) -> dict[str, object]:
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "edits": [_edit(edit) for edit in fix.edits],
    }


def _edit(edit: Edit) -> dict[str, object]:
    return {
        "content": edit.content,
        "location": _location(edit.location),
        "end_location": _location(edit.end_location),
    }
