"""GitLab's code quality report: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from lightlint.finding import Finding, Tier
from lightlint.reports.place import ordered, with_cell

_SEVERITIES = {Tier.ERROR: "critical", Tier.WARNING: "major", Tier.NOTE: "info"}


def render(findings: Sequence[Finding], colour: bool = False) -> str:
    """The findings by file and place. `colour` is taken for the sake of the other reports and changes nothing."""
    told: Counter[tuple[str, str, str]] = Counter()
    issues = []
    for finding in ordered(findings):
        same = (finding.filename, finding.code, finding.message)
        told[same] += 1
        issues.append(_issue(finding, "\0".join((*same, str(told[same])))))
    return json.dumps(issues, indent=2) + "\n"


def _issue(finding: Finding, same: str) -> dict[str, object]:
    """A finding; `same` is what it has in common with itself in other commits, where rows may be others."""
    return {
        "description": f"{finding.code} {with_cell(finding)}",
        "check_name": finding.code,
        "fingerprint": sha256(same.encode(errors="surrogatepass")).hexdigest(),
        "severity": _SEVERITIES[finding.tier],
        "location": {
            "path": finding.filename,
            "lines": {"begin": finding.location.row, "end": finding.end_location.row},
        },
    }
