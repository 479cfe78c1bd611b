"""Records that were kept are judged again; findings come from lightlint's own JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from launched import Place, place

__all__ = ["place"]
pytestmark = pytest.mark.slow

TRAINS = """
    from torch.utils.data import DataLoader

    def main():
        for batch in DataLoader([1, 2], batch_size=2, shuffle=True):
            print(batch)

    if __name__ == "__main__":
        print("no torch needed")
"""


def test_a_kept_run_is_judged_again_with_the_same_verdicts(place: Place, tmp_path: Path) -> None:
    place.write("train.py", TRAINS.replace("from torch", "if False:\n        from torch"))
    kept = tmp_path / "kept"
    first = place.report("--keep", str(kept), "--", "python", "train.py")
    again = place.report("--judge", str(kept))
    assert first["verdicts"] != []
    assert _without_fixes(again) == _without_fixes(first)
    assert again["run"] == first["run"]
    assert again["command"] == "python train.py"


def _without_fixes(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The verdicts; a fix, which needs the text, is not kept."""
    return [{**each, "finding": {**each["finding"], "fix": None}} for each in report["verdicts"]]


def test_several_hosts_are_one_run(place: Place, tmp_path: Path) -> None:
    place.write("train.py", "print()")
    place.confirm("--keep", str(tmp_path / "one"), "--", "python", "train.py")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for records in (tmp_path / "two").glob("*.jsonl"):
        events = [json.loads(line) for line in records.read_text().splitlines()]
        for rank, event in ((1, event) for event in events if event["kind"] == "start"):
            event |= {"host": "other", "rank": rank}
        records.write_text("".join(json.dumps(event) + "\n" for event in events))
    report = place.report("--judge", str(tmp_path / "one"), str(tmp_path / "two"))
    assert report["run"]["steps"] == {"1": 0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--judge", "nowhere"), "nowhere: no run that `--keep` kept: findings.json: No such file or directory"),
        (("--judge", ".", "--", "python", "train.py"), "--judge reads records: it takes no command"),
        (
            ("--findings", "none.json", "--", "python", "train.py"),
            "none.json: cannot be read: No such file or directory",
        ),
        (
            ("--findings", "pyproject.toml", "--", "python", "train.py"),
            "pyproject.toml: no findings as `lightlint --output-format json` writes them",
        ),
    ],
)
def test_what_cannot_be_read_is_one_line(place: Place, arguments: tuple[str, ...], message: str) -> None:
    place.write("train.py", "print()")
    ran = place.confirm(*arguments)
    assert (ran.returncode, ran.stderr) == (2, f"lightlint: {message}\n")
    assert place.left() == []


def test_findings_of_a_file_are_judged_instead_of_new_ones(place: Place) -> None:
    place.write("train.py", TRAINS.replace("from torch", "if False:\n        from torch"))
    linted = subprocess.run(
        [sys.executable, "-m", "lightlint", "--isolated", "--notes", "--output-format", "json", "train.py"],
        cwd=place.project,
        capture_output=True,
        text=True,
        check=False,
    )
    findings = json.loads(linted.stdout)
    assert findings != []
    place.write("one.json", json.dumps(findings[:1]))
    report = place.report("--findings", "one.json", "--", "python", "train.py")
    (verdict,) = report["verdicts"]
    assert {**verdict["finding"], "filename": "", "fix": None} == {**findings[0], "filename": "", "fix": None}
    assert verdict["reason"] != ""
