"""The report for code-scanning services: SARIF 2.1.0, the OASIS standard for results of static analysis."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from lightlint import __version__
from lightlint.finding import Edit, Finding, Fix, Location, Tier
from lightlint.pages import Page, all_pages
from lightlint.reports.place import ordered, with_cell

_SEVERITIES = {Tier.ERROR: "error", Tier.WARNING: "warning", Tier.NOTE: "recommendation"}  # as GitHub calls them
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"


def render(findings: Sequence[Finding], colour: bool = False) -> str:
    """The findings by file and place. `colour` is taken for the sake of the other reports and changes nothing."""
    found = ordered(findings)
    return log([_rule(name) for name in sorted({each.name for each in found})], [_result(each) for each in found])


def log(rules: Sequence[object], results: Sequence[object]) -> str:
    """A whole file of one run: what is said of the rules that found something, and what they found."""
    driver = {
        "name": "lightlint",
        "version": __version__,
        "informationUri": "https://github.com/lightlint/lightlint",
        "rules": rules,
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(name: str) -> dict[str, object]:
    page = all_pages()[name]
    why = _why(page)
    return {
        "id": page.code,
        "name": page.name,
        "shortDescription": {"text": page.title},
        "fullDescription": {"text": page.title},
        "help": {"text": why, "markdown": f"{why}\n\n[The page of {page.code}]({page.url})"},
        "helpUri": page.url,
        "defaultConfiguration": {"level": page.tier.value},
        "properties": {"tags": [page.family], "problem.severity": _SEVERITIES[page.tier]},
    }


def _why(page: Page) -> str:
    """What a page says of why its fault is bad, up to the first example."""
    below = page.path.read_text("utf-8").partition("## Why it is bad\n")[2]
    return re.split(r"^(?:```|## )", below, maxsplit=1, flags=re.MULTILINE)[0].strip() or page.title


def _result(finding: Finding) -> dict[str, object]:
    """A finding; rows of a notebook's are those of its cell, whose number the message tells."""
    artifact = {"uri": quote(Path(finding.filename).as_posix())}
    place = {"artifactLocation": artifact, "region": _region(finding.location, finding.end_location)}
    result: dict[str, object] = {
        "ruleId": finding.code,
        "level": finding.tier.value,
        "message": {"text": with_cell(finding)},
        "locations": [{"physicalLocation": place}],
    }
    if finding.fix is not None and finding.cell is None:  # edits of a cell are none of the file's JSON
        result["fixes"] = [_fix(finding.fix, artifact)]
    return result


def _fix(fix: Fix, artifact: dict[str, str]) -> dict[str, object]:
    return {
        "description": {"text": f"{fix.message} ({fix.applicability.value})"},
        "artifactChanges": [{"artifactLocation": artifact, "replacements": _replacements(fix.edits)}],
    }


def _replacements(edits: Iterable[Edit]) -> list[dict[str, object]]:
    return [
        {"deletedRegion": _region(edit.location, edit.end_location), "insertedContent": {"text": edit.content}}
        for edit in edits
    ]


def _region(start: Location, end: Location) -> dict[str, int]:
    return {"startLine": start.row, "startColumn": start.column, "endLine": end.row, "endColumn": end.column}
