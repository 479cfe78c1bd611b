"""Hold the verdicts against labelled cases: `python tests/ecosystem/confirm_cases.py DIRECTORY [CASE...]` (no test).

Each case is a folder with `bad.py` and `good.py` (or folders of that name, or notebooks) and a `label.toml` that says where
the fault of the bad one is. Both are run under `lightlint confirm` in folders of their own, on two ranks where the program
makes a process group or the label is about ranks. What asks for a GPU is moved to the CPU, and what only defines classes
gets a few lines behind it that train them; no line moves.

The good program is asked for more than what is found in it: the findings at the bad one's label are judged there, too,
where their lines are the same, as if the linter had been wrong. What must hold: a labelled fault is never refuted, and in
the good program neither a warning nor a moved finding is confirmed. Prints a row for each case; status 1 if a promise was broken. Needs torch and Lightning.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from confirm_drivers import ARGUMENTS, DRIVERS, UNRUNNABLE

_TO_CPU = (
    (r"torch\.cuda\.set_device\([^()]*\)", "None"),
    (r"torch\.device\(\"cuda(:\d+)?\"(, [^()]*)?\)", 'torch.device("cpu")'),
    (r"\"nccl\"", '"gloo"'),
    (r", device_ids=\[[^\]]*\]", ""),
    (r"\.cuda\([^()]*\)", ".cpu()"),
    (r"accelerator=\"gpu\"", 'accelerator="cpu"'),
    (r"devices=8", "devices=2"),
)
_TRUE_OF_MANY = {"loader-without-workers"}  # at many a label by chance
_RANKED = re.compile(r"init_process_group|strategy=\"ddp|Fabric\(")


@dataclass(frozen=True)
class Label:
    """Where a case's fault is: rows of a file that may be named."""

    kind: str
    file: str
    rows: frozenset[int]
    cell: int | None

    def is_at(self, finding: dict[str, Any]) -> bool:
        same_cell = self.cell is None or (finding["cell"] or 0) - 1 == self.cell
        rows = range(finding["location"]["row"], finding["end_location"]["row"] + 1)
        return finding["filename"].endswith(self.file) and same_cell and not self.rows.isdisjoint(rows)


@dataclass(frozen=True)
class Row:
    """What was said of a case: rule, verdict and reason at the label, the same of the good program, and its confirmed."""

    case: str
    kind: str
    labelled: tuple[tuple[str, str, str], ...]
    ended: tuple[str, str]
    good: tuple[tuple[str, str], ...]
    moved: tuple[tuple[str, str, str], ...]

    @property
    def broken(self) -> str:
        if any(verdict == "refuted" for _, verdict, _ in self.labelled) and not self._is_confirmed:
            return "refuted in the bad program"
        named = {rule for rule, _, _ in self.labelled}
        wrong = [rule for rule, tier in self.good if tier != "note" or rule in named]
        return f"confirmed in the good program: {', '.join(wrong)}" if wrong else ""

    @property
    def _is_confirmed(self) -> bool:
        return any(verdict == "confirmed" for _, verdict, _ in self.labelled)

    def __str__(self) -> str:
        said, moved = (
            "; ".join(f"{rule}: {verdict} ({reason})" for rule, verdict, reason in each) or "-"
            for each in (self.labelled, self.moved)
        )
        good = ", ".join(f"{rule} ({tier})" for rule, tier in self.good) or "-"
        ended = " / ".join(self.ended)
        return f"| {self.case} | {self.kind} | {said} | {moved} | {good} | {ended} | {self.broken} |"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("cases", nargs="*", help="names of cases (default: all that can run)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the reports in DIR")
    options = parser.parse_args(arguments)
    print("| case | kind | the labelled fault | the same in good | confirmed in good | ended | wrong |")
    print("|---|---|---|---|---|---|---|")
    broken = False
    for name in options.cases or sorted(_runnable(options.directory)):
        row = _row(options.directory / name, options.keep)
        print(row, flush=True)
        broken = broken or bool(row.broken)
    return int(broken)


def _runnable(directory: Path) -> Iterator[str]:
    for label in directory.glob("*/label.toml"):
        if label.parent.name not in UNRUNNABLE:
            yield label.parent.name


def _row(case: Path, keep: Path | None) -> Row:
    raw = tomllib.loads((case / "label.toml").read_text(encoding="utf-8"))
    label = Label(
        raw["kind"],
        raw["file"].removeprefix("bad/"),
        frozenset({raw["line"], *raw.get("also_ok_lines", ())}),
        raw.get("cell"),
    )
    bad = _report(case, "bad", label, keep)
    good = _report(case, "good", label, keep)
    found = [
        each
        for each in bad.get("verdicts", ())
        if label.is_at(each["finding"]) and each["finding"]["name"] not in _TRUE_OF_MANY
    ]
    return Row(
        case.name,
        label.kind,
        tuple((each["finding"]["name"], each["verdict"], each["reason"]) for each in found),
        (_ended(bad), _ended(good)),
        tuple(
            (each["finding"]["name"], each["finding"]["severity"])
            for each in good.get("verdicts", ())
            if each["verdict"] == "confirmed"
        ),
        tuple(
            (each["finding"]["name"], each["verdict"], each["reason"])
            for each in good.get("verdicts", ())
            if each["finding"]["name"] in {one["finding"]["name"] for one in found}
        ),
    )


def _ended(report: dict[str, Any]) -> str:
    return str(report["run"]["ended"]) if "run" in report else report["error"]


def _report(case: Path, variant: str, label: Label, keep: Path | None) -> dict[str, Any]:
    """The JSON report of one program, or {"error": text}."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        script = _project(case, variant, Path(folder))
        options = ["--devices", "2"] if _is_ranked(script) else []
        if variant == "good":
            twin = _project(case, "bad", Path(other))
            findings = [*_found(script.parent), *_moved(twin.parent, script.parent, label)]
            written = Path(other) / "findings.json"
            written.write_text(json.dumps(findings), encoding="utf-8")
            options += ["--findings", str(written)]
        words = ["--", "python", script.name, *ARGUMENTS.get(case.name, ())]
        limits = ("--stall", "15", "--timeout", "240")
        done = _lightlint("confirm", "--output-format", "json", *limits, *options, *words, cwd=script.parent)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{case.name}-{variant}.json").write_text(done.stdout)
        (keep / f"{case.name}-{variant}.err").write_text(done.stderr)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"error": (done.stderr.strip().splitlines() or ["no report"])[-1]}
    return report


def _found(folder: Path) -> list[dict[str, Any]]:
    """What is found in a program, notes included."""
    done = _lightlint("--output-format", "json", "--notes", "--exit-zero", ".", cwd=folder)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return [{**each, "filename": str(folder / each["filename"])} for each in found]


def _moved(bad: Path, good: Path, label: Label) -> Iterator[dict[str, Any]]:
    """The findings at the label of the bad program whose lines are in the good one, too, as findings of that."""
    for finding in _found(bad):
        name = Path(finding["filename"]).name
        target = good / name.replace("bad", "good")
        if not label.is_at(finding) or not target.exists():
            continue
        texts = ((bad / name).read_text(encoding="utf-8"), target.read_text(encoding="utf-8"))
        rows = _same_rows(*(text.splitlines() for text in texts))
        first, last = (finding[end]["row"] for end in ("location", "end_location"))
        if first in rows and last in rows:
            places = {end: {**finding[end], "row": rows[finding[end]["row"]]} for end in ("location", "end_location")}
            yield {**finding, **places, "filename": str(target)}


def _same_rows(one: Sequence[str], two: Sequence[str]) -> dict[int, int]:
    """The rows of a text that another one has as well, with their numbers there."""
    blocks = SequenceMatcher(None, one, two, autojunk=False).get_matching_blocks()
    return {block.a + at + 1: block.b + at + 1 for block in blocks for at in range(block.size)}


def _lightlint(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lightlint", *words],
        cwd=cwd,
        env={**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _is_ranked(script: Path) -> bool:
    return any(_RANKED.search(each.read_text(encoding="utf-8")) for each in script.parent.glob("*.py"))


def _project(case: Path, variant: str, folder: Path) -> Path:
    """Make the project of one program in a folder; returns what is to be run."""
    whole = case / variant
    if whole.is_dir():
        shutil.copytree(whole, folder, dirs_exist_ok=True)
    else:
        source = next(case.glob(f"{variant}.*"))
        shutil.copy(source, folder / source.name)
    (folder / "pyproject.toml").touch()
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for pattern, instead in _TO_CPU:
            text = re.sub(pattern, instead, text)
        path.write_text(text, encoding="utf-8")
    entry, more = DRIVERS.get(case.name, ("", ""))
    script = folder / entry if entry else next(_scripts(folder, variant))
    if more:
        with script.open("a", encoding="utf-8") as file:
            file.write(f"\n\n{more}")
    return script


def _scripts(folder: Path, variant: str) -> Iterator[Path]:
    yield from folder.glob(f"{variant}.*")
    yield from (path for path in sorted(folder.glob("*.py")) if "__main__" in path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
