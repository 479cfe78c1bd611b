"""The script that holds lightlint's promises on real code, on code of the project's own."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from checkout import ROOT

sys.path.insert(0, str(ROOT / "tests" / "ecosystem"))
import check as ecosystem


@pytest.mark.parametrize("unsafe", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_seeds_keep_every_promise(unsafe: bool, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "fixtures" / "seeds", tmp_path / "seeds")
    report = ecosystem.check(tmp_path / "seeds", unsafe=unsafe)
    assert report.broken == []
    assert report.files == len([*(tmp_path / "seeds").rglob("*.py"), *(tmp_path / "seeds").rglob("*.ipynb")])
    assert report.repaired["LL502"] == 3
    assert report.found["LL502", "model-moved-before-fit", "warning"] == 3
    assert bool(report.repaired["LL106"]) is unsafe


def test_a_broken_promise_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that hides a finding: the faulty file meets the `needs` of no page, and no rule asks for what happens in it."""
    from lightlint.linting import elsewhere, lint

    monkeypatch.setattr(lint, "met_by", lambda _text, _active: [])
    monkeypatch.setattr(elsewhere, "asking_for", lambda _kinds, _active: [])
    (tmp_path / "train.py").write_text((ROOT / "fixtures/seeds/s08_empty_cache/emptied.py").read_text())
    report = ecosystem.check(tmp_path, unsafe=False)
    assert any("LL501 only without the gate" in line for line in report.broken)


def test_the_command_reports_counts_and_leaves_its_input_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "fixtures/seeds/s08_empty_cache", tmp_path / "code")
    text = (tmp_path / "code" / "emptied.py").read_text()
    assert ecosystem.main([str(tmp_path / "code")]) == 0
    assert "    1  LL501 warning empty-cache-in-loop  (1 repaired)" in capsys.readouterr().out
    assert (tmp_path / "code" / "emptied.py").read_text() == text
