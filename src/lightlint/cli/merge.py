"""`lightlint merge`: the JSON or SARIF reports of several shards as the one that a run over all files writes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightlint.config.options import SettingsError
from lightlint.reports.formats import sarif

_LOUD = {"error", "warning"}


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status.

    Raises:
        SettingsError: a report cannot be read, or they are of two kinds.
    """
    parser = argparse.ArgumentParser(
        prog="lightlint merge", description="Join the reports of `lightlint --shard I/N`.", allow_abbrev=False
    )
    parser.add_argument(
        "reports", nargs="+", type=Path, metavar="REPORT", help="written with --output-format json, sarif"
    )
    parser.add_argument("-e", "--exit-zero", action="store_true", help="exit with 0 even where something was found")
    options = parser.parse_args(arguments)
    reports = [_read(path) for path in options.reports]
    if len({type(report) for report in reports}) > 1:
        raise SettingsError("lightlint merge: some reports are JSON and some are SARIF")
    text, levels = _sarif(reports) if isinstance(reports[0], dict) else _json(reports)
    sys.stdout.write(text)
    return int(not _LOUD.isdisjoint(levels) and not options.exit_zero)


def _read(path: Path) -> Any:
    try:
        report = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"{path}: no JSON: {error}") from error
    is_json = isinstance(report, list) and all(isinstance(each, dict) and "location" in each for each in report)
    if not is_json and not (isinstance(report, dict) and "runs" in report):
        raise SettingsError(f"{path}: not a JSON or SARIF report of lightlint")
    return report


def _json(reports: Sequence[list[dict[str, Any]]]) -> tuple[str, set[str]]:
    found = [finding for report in reports for finding in report]
    found.sort(key=lambda each: each["filename"])  # a file's findings are of one shard, and in order there
    return json.dumps(found, indent=2) + "\n", {each["severity"] for each in found}


def _sarif(reports: Sequence[dict[str, Any]]) -> tuple[str, set[str]]:
    runs = [run for report in reports for run in report["runs"]]
    rules = {rule["name"]: rule for run in runs for rule in run["tool"]["driver"]["rules"]}
    results = [result for run in runs for result in run["results"]]
    results.sort(key=_uri)
    return sarif.log([rules[name] for name in sorted(rules)], results), {result["level"] for result in results}


def _uri(result: dict[str, Any]) -> str:
    from urllib.parse import unquote

    uri: str = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    return unquote(uri)
