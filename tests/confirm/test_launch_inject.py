"""Where faults are injected, and that the program sees them there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from lightlint.confirm import plan as plans
from lightlint.confirm.launch.injection import place
from lightlint.confirm.launch.start import SITE
from lightlint.confirm.plan import VARIABLE, Plan
from lightlint.confirm.verdict import Claim

PROGRAM = """
    import sys

    def step(number):
        try:
            value = number
        except {caught} as error:
            print("caught", type(error).__name__, error, flush=True)
            return None
        return value

    print([step(number) for number in range(3)], flush=True)
"""


def claim_of(path: Path, first: int, last: int) -> Claim:
    return Claim(3, "LL106", "training-step-swallows-exception", "error", "", str(path), first, last)


def write(folder: Path, text: str) -> Path:
    path = (folder / "train.py").resolve()
    path.write_text(dedent(text), encoding="utf-8")
    return path


@pytest.mark.parametrize("row", [5, 6, 7, 8])
def test_the_fault_goes_to_the_first_statement_of_the_try(tmp_path: Path, row: int) -> None:
    path = write(tmp_path, PROGRAM.format(caught="Exception"))
    target = place(claim_of(path, row, row))
    assert target is not None
    assert (target.first, target.last, target.names) == (6, 6, ())


def test_a_claim_about_a_whole_function_means_the_try_in_it(tmp_path: Path) -> None:
    path = write(tmp_path, PROGRAM.format(caught="Exception"))
    target = place(claim_of(path, 4, 10))
    assert target is not None
    assert target.first == 6


def test_no_try_no_fault(tmp_path: Path) -> None:
    assert place(claim_of(write(tmp_path, PROGRAM.format(caught="Exception")), 12, 12)) is None
    assert place(claim_of(write(tmp_path, "def broken(:"), 1, 1)) is None
    assert place(claim_of(tmp_path / "gone.py", 1, 1)) is None


@pytest.mark.parametrize(
    ("caught", "name"),
    [
        ("Exception", "RuntimeError"),
        ("RuntimeError", "RuntimeError"),
        ("(ValueError, KeyError)", "ValueError"),
        ("ArithmeticError", "ArithmeticError"),
    ],
)
def test_the_program_catches_the_fault_once(tmp_path: Path, caught: str, name: str) -> None:
    path = write(tmp_path, PROGRAM.format(caught=caught))
    ran, events = run(tmp_path, path, rank=0)
    assert ran.stdout.splitlines() == [f"caught {name} injected by lightlint", "[None, 1, 2]"], ran.stderr
    (injected,) = [event for event in events if event["kind"] == "injected"]
    assert (injected["finding"], injected["row"], injected["type"]) == (3, 6, name)


def test_other_ranks_see_no_fault(tmp_path: Path) -> None:
    path = write(tmp_path, PROGRAM.format(caught="Exception"))
    ran, events = run(tmp_path, path, rank=1)
    assert ran.stdout.splitlines() == ["[0, 1, 2]"]
    assert [event for event in events if event["kind"] == "injected"] == []


def run(folder: Path, path: Path, rank: int) -> tuple[subprocess.CompletedProcess[str], list[dict[str, object]]]:
    """The program under a plan that injects a fault on a rank."""
    records = folder / "records"
    records.mkdir()
    target = place(claim_of(path, 7, 7))
    assert target is not None
    plan = Plan(str(records), str(folder), (target,), ("inject",), inject=3, inject_rank=rank, trace=False)
    environment = {**os.environ, VARIABLE: str(plans.write(plan)), "PYTHONPATH": str(SITE)}
    ran = subprocess.run([sys.executable, path], env=environment, capture_output=True, text=True, check=False)
    (file,) = records.glob("*.jsonl")
    return ran, [json.loads(line) for line in file.read_text().splitlines()]
