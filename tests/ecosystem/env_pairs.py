"""Tell why code runs in one environment and not in another, on real ones: `python tests/ecosystem/env_pairs.py FOLDER`.

Each folder of `fixtures/environments` is a program and two environments, one of which it runs in. They are made of
pinned requirements in FOLDER, where they stay for the next time (some 14 GB); the program is run in both, a snapshot is
taken of both, and the first row of `lightlint env diff A B --code` must name the true cause. Prints a Markdown table;
status 1 if a pair is not as it says. Needs a package index, that of torch's CPU builds, and `python3.11` and `python3.12`.

With `--update` the snapshots are written beside the programs, for the test that needs none of this.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAIRS = Path(__file__).parents[2] / "fixtures" / "environments"


@dataclass(frozen=True)
class Environment:
    """What an environment is made of; `then` is installed last and whatever it breaks, as `pip install` of one package does."""

    python: str
    requirements: tuple[str, ...]
    then: tuple[str, ...] = ()

    def made(self, folder: Path) -> Path:
        """The interpreter of the environment in `folder`, which is made if it is not there."""
        home = folder / hashlib.sha256(repr(self).encode()).hexdigest()[:12]
        python, done = home / "bin" / "python", home / "complete"
        if not done.exists():
            shutil.rmtree(home, ignore_errors=True)
            _succeed(f"python{self.python}", "-m", "venv", home)
            _succeed(python, "-m", "pip", "install", "--quiet", *self.requirements)
            if self.then:
                _succeed(python, "-m", "pip", "install", "--quiet", "--no-deps", *self.then)
            done.touch()
        return python


@dataclass(frozen=True)
class Pair:
    """A program with two environments, and what is true of them."""

    folder: Path
    a: Environment
    b: Environment
    runs_in: str
    error: str  # what the program ends with in the other environment
    cause: str  # subject of the row that names the true cause
    why: str  # words of that row

    @property
    def code(self) -> Path:
        return self.folder / "code.py"


def read_pair(folder: Path) -> Pair:
    """The pair that a folder of `fixtures/environments` holds."""
    raw = tomllib.loads((folder / "pair.toml").read_text())
    sides = {
        side: Environment(raw[side]["python"], tuple(raw[side]["requirements"]), tuple(raw[side].get("then", ())))
        for side in "ab"
    }
    return Pair(folder, sides["a"], sides["b"], raw["runs_in"], raw["error"], raw["cause"], raw["why"])


def first_row(pair: Pair, a: Path, b: Path) -> dict[str, Any]:
    """The first row of `lightlint env diff`; it runs beside the program, so that no path is told but its name."""
    words = ("diff", a, b, "--code", pair.code.name, "--output-format", "json")
    ran = _run(sys.executable, "-m", "lightlint", "env", *words, cwd=pair.folder)
    if ran.returncode == 2:
        raise SystemExit(ran.stderr)
    rows: list[dict[str, Any]] = json.loads(ran.stdout)
    return rows[0] if rows else {"subject": "", "why": "", "first": "", "second": ""}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="only these pairs")
    parser.add_argument("--update", action="store_true", help="write the snapshots beside the programs")
    options = parser.parse_args(arguments)
    print(f"{platform.system()} {platform.machine()}, lightlint on Python {platform.python_version()}\n")
    print("| pair | runs with | ends with in the other | first row of `env diff` | |\n|---|---|---|---|---|")
    wrong = 0
    for folder in sorted(path.parent for path in PAIRS.glob("*/pair.toml")):
        if not options.names or folder.name in options.names:
            wrong += not _shown(read_pair(folder), options.folder.resolve(), update=options.update)
    return int(wrong > 0)


def _shown(pair: Pair, folder: Path, *, update: bool) -> bool:
    """Print a pair's row of the table; whether all is as the pair says."""
    pythons = {"a": pair.a.made(folder), "b": pair.b.made(folder)}
    runs = {side: _run(python, pair.code, cwd=folder) for side, python in pythons.items()}
    other = "b" if pair.runs_in == "a" else "a"
    ends = next(
        (line for line in reversed(runs[other].stderr.splitlines()) if line[:1].strip() and "Error" in line), ""
    )
    snapshots = folder / pair.folder.name
    snapshots.mkdir(exist_ok=True)
    for side, python in pythons.items():
        target = snapshots / f"{side}.json"
        _succeed(sys.executable, "-m", "lightlint", "env", "snapshot", "--python", python, "-o", target)
        if update:  # without the name that a builder gave the kernel
            told = re.sub(r'("release": "[\d.]+)[^"]*', r"\1", target.read_text())
            (pair.folder / target.name).write_text(told)
    row = first_row(pair, snapshots / "a.json", snapshots / "b.json")
    as_told = runs[pair.runs_in].returncode == 0 and runs[other].returncode != 0 and pair.error in runs[other].stderr
    named = row["subject"] == pair.cause and pair.why in row["why"]
    verdict = "as told" if as_told and named else "WRONG ROW" if as_told else "RUNS OTHERWISE"
    why = row["why"].replace(f"{snapshots}/", "").replace("|", "\\|")
    values = f"{row['first'] or '-'}, {row['second'] or '-'}"
    print(
        f"| {pair.folder.name} | {pair.runs_in} | {ends[:90]} | {row['subject']}: {values}: {why} | {verdict} |",
        flush=True,
    )
    return as_told and named


def _run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)


def _succeed(*command: str | Path) -> None:
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {ran.stderr.strip()[-2000:]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
