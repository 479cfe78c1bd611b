"""Each program of fixtures/seeds through `lightlint confirm`: the verdicts and the numbers that must be there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from launched import linux_only
from seed_programs import PROGRAMS, SEEDS, Program, broken, report_of

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytestmark = [linux_only, pytest.mark.slow]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_verdicts(program: Program, tmp_path: Path) -> None:
    report = report_of(program, tmp_path)
    assert list(broken(program, report, torch.cuda.device_count())) == []


@pytest.mark.parametrize("table", ["one_gpu.json", "two_gpus.json"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_what_gpus_said_is_as_told(program: Program, table: str) -> None:
    """The verdicts that `python tests/confirm/seed_programs.py` wrote on machines with GPUs."""
    told = json.loads((SEEDS / table).read_text("utf-8"))
    report = told["programs"][program.name]
    for each in report["verdicts"]:
        each["finding"] = {"name": each["finding"].rpartition(" ")[2]}
    assert list(broken(program, report, len(told["machine"]["gpus"]))) == []


def test_every_seed_is_run() -> None:
    assert {program.seed.split("/")[0] for program in PROGRAMS} == {
        each.name for each in SEEDS.iterdir() if each.is_dir()
    }
