"""Claims and findings beside the records, so that a run can be judged again; findings from lightlint's own JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lightlint.confirm.claims import Suspicion
from lightlint.confirm.launch.target import CommandError
from lightlint.confirm.verdict import Claim
from lightlint.finding import Finding, Location, Tier
from lightlint.reports.formats.json import as_dict

FILE = "findings.json"
SCHEMA = 1


def save(found: Sequence[Suspicion], command: str, folder: Path) -> None:
    """Put what a run is to judge beside its records.

    Raises:
        OSError: it cannot be written.
    """
    kept = {
        "schema": SCHEMA,
        "command": command,
        "findings": [{"finding": as_dict(each.finding), "claim": asdict(each.claim)} for each in found],
    }
    (folder / FILE).write_text(json.dumps(kept), encoding="utf-8")


def load(folder: Path) -> tuple[str, tuple[Suspicion, ...]]:
    """The command and what its run was to judge.

    Raises:
        CommandError: the folder holds no kept run.
    """
    path = folder / FILE
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        found = tuple(Suspicion(as_finding(each["finding"]), Claim(**each["claim"])) for each in kept["findings"])
        return str(kept["command"]), found
    except OSError as error:
        raise CommandError(f"{folder}: no run that `--keep` kept: {FILE}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{path}: not written by this version of lightlint") from error


def read_findings(path: Path) -> tuple[Finding, ...]:
    """The findings of a file that `lightlint --output-format json` wrote.

    Raises:
        CommandError: the file cannot be read or holds something else.
    """
    try:
        return tuple(as_finding(each) for each in json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"{path}: no findings as `lightlint --output-format json` writes them") from error


def as_finding(raw: dict[str, Any]) -> Finding:
    """A finding from the fields of the JSON report, which has no offsets and whose fix is of no use here.

    Raises:
        KeyError, TypeError, ValueError: the fields are not those of a finding.
    """
    first, last = (Location(int(raw[key]["row"]), int(raw[key]["column"])) for key in ("location", "end_location"))
    return Finding(
        code=str(raw["code"]),
        name=str(raw["name"]),
        tier=Tier(raw["severity"]),
        message=str(raw["message"]),
        filename=str(raw["filename"]),
        start=0,
        end=0,
        location=first,
        end_location=last,
        cell=raw.get("cell"),
        noqa_row=raw.get("noqa_row"),
    )
