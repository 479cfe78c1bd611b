"""Files shared among processes: started in either way they say the same, and one that dies costs its own files only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from faulty import FAULT

from lightlint.config.settings import Settings, load
from lightlint.facts.project.project import Projects
from lightlint.linting import batch
from lightlint.pipeline import jobs, run
from lightlint.results import Result
from lightlint.sources.load import load as read_file
from lightlint.sources.source import Source


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = [tmp_path / f"file{number}.py" for number in range(6)]
    for number, file in enumerate(made):
        file.write_text(FAULT + "\n" * number)
    return made


def dies(source: Source, settings: Settings, projects: Projects) -> Result:
    if Path(source.filename).name == "file3.py":
        os._exit(3)
    return batch.checked(source, settings, projects)


def raises(source: Source, settings: Settings, projects: Projects) -> Result:
    raise RuntimeError(f"cannot lint {Path(source.filename).name}")


def shared(files: list[Path], start: str, one: batch.One) -> dict[int, Result]:
    sizes = [file.stat().st_size for file in files]
    settings = load({"notes": True}, isolated=True)
    return {each.index: each.result for each in jobs._shared(files, sizes, settings, 2, None, one, start)}


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_say_what_one_says(files: list[Path], start: str) -> None:
    settings = load({"notes": True}, isolated=True)
    alone = [each.result for each in batch.outcomes(files, settings, batch.checked, Projects())]
    assert all(result.findings for result in alone)
    assert shared(files, start, batch.checked) == dict(enumerate(alone))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_repair_as_one_does(files: list[Path], start: str) -> None:
    settings = load({"notes": True}, isolated=True)
    found = {str(file): batch.checked(read_file(file), settings, Projects()).findings for file in files}
    alone = [each.result for each in batch.outcomes(files, settings, batch.Fixer(True, found), Projects())]
    assert all(result.changed for result in alone)
    assert shared(files, start, batch.Fixer(True, found)) == dict(enumerate(alone))
    assert shared(files, start, batch.Fixer(True, {})) == dict(enumerate(alone))


def test_a_run_with_jobs_repairs_as_one_without(files: list[Path]) -> None:
    settings = load({"notes": True}, isolated=True)
    before = [file.read_bytes() for file in files]
    results, texts = [], []
    for count in (1, 2):
        for file, data in zip(files, before, strict=True):
            file.write_bytes(data)
        results.append(run.fix([str(files[0].parent)], settings, unsafe=True, write_files=True, jobs=count))
        texts.append([file.read_bytes() for file in files])
    assert results[0] == results[1]
    assert texts[0] == texts[1]
    assert all(text == each.data for text, each in zip(texts[0], results[0].changed, strict=True))
    assert texts[0] != before


def test_findings_of_another_text_are_not_repaired_by(files: list[Path]) -> None:
    settings = load({"notes": True}, isolated=True)
    found = batch.checked(read_file(files[0]), settings, Projects()).findings
    files[0].write_text("import os\n\n\n\n" + files[0].read_text())
    source = read_file(files[0])
    stale = batch.Fixer(True, {source.filename: found})(source, settings, Projects())
    assert stale == batch.Fixer(True, {})(source, settings, Projects())


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_process_that_dies_is_told_for_its_files(files: list[Path], start: str) -> None:
    found = shared(files, start, dies)
    assert found.keys() == set(range(6))
    lost = {number for number, result in found.items() if result.problems}
    assert 3 in lost
    assert len(lost) <= 3
    assert all("ended before it was done" in found[number].problems[0].message for number in lost)
    assert all(found[number].findings for number in found.keys() - lost)


def test_an_error_in_a_process_ends_the_run(files: list[Path]) -> None:
    with pytest.raises(RuntimeError, match="cannot lint file"):
        shared(files, "fork", raises)


def test_order_does_not_hang_on_how_python_hashes(tmp_path: Path) -> None:
    """What a rule tells of one place is the same, whatever the order of a set is in a process."""
    (tmp_path / "train.py").write_text(
        "import lightning as L\n\n\nclass Model(L.LightningModule):\n"
        "    def training_step(self, batch, batch_idx):\n        return self.step(batch)\n\n"
        "    def validation_step(self, batch, batch_idx):\n        self.step(batch)\n\n"
        "    def step(self, batch):\n        loss = self(batch)\n"
        '        self.log_dict({"a": loss, "b": loss, "c": loss, "d": loss})\n        return loss\n'
    )
    command = [
        sys.executable,
        "-m",
        "lightlint",
        "--isolated",
        "--no-cache",
        "--notes",
        "--select",
        "LL651",
        "train.py",
    ]
    said = set()
    for seed in range(4):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert result.stdout.count("LL651") == 1
        said.add(result.stdout)
    assert len(said) == 1
