"""The report for programs: one object, its shape named by `schema`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from lightlint.confirm.observed.observation import Observation
from lightlint.confirm.reports.report import Judged, Report
from lightlint.reports.formats.json import as_dict

SCHEMA = 1


def render(report: Report) -> str:
    """The run and a verdict for each finding, in the fields of the finding's own JSON."""
    run = report.run
    return (
        json.dumps(
            {
                "schema": SCHEMA,
                "command": report.command,
                "reproduce": report.reproduce,
                "run": {
                    "ended": run.ended,
                    "status": run.status,
                    "ranks": run.world,
                    "steps": {str(rank): process.steps for rank, process in run.ranks.items()},
                    "stacks": dict(run.stacks or {}),
                    "written": list(run.written),
                    "incomplete": run.incomplete,
                    "notes": list(run.notes),
                },
                "observations": [_observation(each) for each in report.observed],
                "determinism": _determinism(report),
                "verdicts": [_verdict(each) for each in report.judged],
            },
            indent=2,
        )
        + "\n"
    )


def _observation(observed: Observation) -> dict[str, Any]:
    return {
        "kind": observed.kind,
        "fault": observed.is_fault,
        "message": observed.message,
        "details": list(observed.details),
        "ranks": list(observed.ranks),
        "places": [{"filename": file, "row": row, "function": function} for file, row, function in observed.places],
    }


def _determinism(report: Report) -> dict[str, Any] | None:
    found = report.determinism
    return None if found is None else {**asdict(found), "sentence": found.sentence}


def _verdict(judged: Judged) -> dict[str, Any]:
    verdict = judged.verdict
    return {
        "verdict": verdict.outcome.value,
        "reason": verdict.reason,
        "scope": verdict.scope,
        "numbers": [asdict(number) for number in verdict.numbers],
        "finding": as_dict(judged.finding),
    }
