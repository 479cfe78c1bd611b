"""Parts of the files linted apart and joined are the report of one run over all of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from faulty import FAULT
from forked import run_forked


def lightlint(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_forked("lightlint", *arguments, cwd=cwd)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "code" / "deep er").mkdir(parents=True)
    for number, name in enumerate(["b.py", "a-1.py", "deep er/ä.py", "a/x.py", "a.py", "clean.py"]):
        file = tmp_path / "code" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("import torch\n" if name == "clean.py" else FAULT + "\n" * number + "x = torch.load('a')\n")
    return tmp_path


@pytest.mark.parametrize("form", ["json", "sarif"])
@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_merged_shards_are_the_whole(project: Path, form: str, count: int) -> None:
    options = ("--isolated", "--no-cache", "--notes", "--output-format", form)
    whole = lightlint(*options, "code", cwd=project)
    assert whole.returncode == 1
    parts = []
    for number in range(1, count + 1):
        part = project / f"{number}.{form}"
        done = lightlint(*options, "--shard", f"{number}/{count}", "code", cwd=project)
        assert done.stderr in {"", "lightlint: no Python files found under code\n"}
        part.write_text(done.stdout)
        parts.append(part)
    joined = lightlint("merge", *reversed(parts), cwd=project)
    assert (joined.stdout, joined.stderr, joined.returncode) == (whole.stdout, "", 1)
    assert lightlint("merge", "--exit-zero", *parts, cwd=project).returncode == 0


def test_sarif_names_rules_places_and_fixes(project: Path) -> None:
    done = lightlint("--isolated", "--no-cache", "--select", "LL501", "--output-format", "sarif", "code", cwd=project)
    (run,) = json.loads(done.stdout)["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert (rule["id"], rule["name"], rule["defaultConfiguration"]) == (
        "LL501",
        "empty-cache-in-loop",
        {"level": "warning"},
    )
    assert rule["help"]["markdown"] == f"{rule['help']['text']}\n\n[The page of LL501]({rule['helpUri']})"
    assert "ResNet-50" in rule["help"]["text"]
    assert rule["properties"] == {"tags": ["devices"], "problem.severity": "warning"}
    places = [each["locations"][0]["physicalLocation"] for each in run["results"]]
    assert places[-1]["artifactLocation"]["uri"] == "code/deep%20er/%C3%A4.py"
    assert {place["region"]["startLine"] for place in places} == {8}
    (change,) = run["results"][0]["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["deletedRegion"]["startLine"] == 8


def test_only_its_files_are_repaired(project: Path) -> None:
    files = sorted((project / "code").rglob("*.py"))
    before = {file: file.read_text() for file in files}
    lightlint("--isolated", "--select", "LL501", "--fix", "--shard", "2/2", "code", cwd=project)
    repaired = {file for file in files if file.read_text() != before[file]}
    assert 0 < len(repaired) < len(files) - 1
    lightlint("--isolated", "--select", "LL501", "--fix", "--shard", "1/2", "code", cwd=project)
    assert len([file for file in files if file.read_text() != before[file]]) == len(files) - 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--shard", "0/2", "."), "expected I/N"),
        (("--shard", "3/2", "."), "expected I/N"),
        (("--shard", "half", "."), "expected I/N"),
        (("merge", "nothing.json"), "nothing.json: No such file"),
        (("merge", "text.json"), "text.json: no JSON"),
        (("merge", "other.json"), "other.json: not a JSON or SARIF report"),
        (("merge", "one.json", "two.sarif"), "some reports are JSON and some are SARIF"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "text.json").write_text("found nothing")
    (tmp_path / "other.json").write_text("[1]")
    (tmp_path / "one.json").write_text("[]")
    (tmp_path / "two.sarif").write_text('{"runs": []}')
    done = lightlint(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert message in done.stderr
