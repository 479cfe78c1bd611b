"""The report for programs that read as it comes: the objects of `json`, one a line."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lightlint.finding import Finding
from lightlint.reports.formats.json import as_dict
from lightlint.reports.place import ordered


def render(findings: Sequence[Finding], colour: bool = False) -> str:
    """The findings by file and place. `colour` is taken for the sake of the other reports and changes nothing."""
    return "".join(f"{json.dumps(as_dict(finding))}\n" for finding in ordered(findings))
