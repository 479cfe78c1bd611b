"""Each program of fixtures/seeds through `lightlint confirm`: the verdicts and the numbers that must be there."""

from __future__ import annotations

from pathlib import Path

import pytest
from launched import linux_only
from seed_programs import PROGRAMS, SEEDS, Program, broken, report_of

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytestmark = linux_only


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_verdicts(program: Program, tmp_path: Path) -> None:
    report = report_of(program, tmp_path)
    assert list(broken(program, report, gpus=torch.cuda.device_count() > 1)) == []


def test_every_seed_is_run() -> None:
    assert {program.seed.split("/")[0] for program in PROGRAMS} == {
        each.name for each in SEEDS.iterdir() if each.is_dir()
    }
