"""What a sketch leaves out of sight is looked up in the text: screening changes no finding, and saves most of the parsing."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkout import ROOT
from faulty import FAULT

from lightlint.config.settings import load
from lightlint.facts.project.project import Projects
from lightlint.finding import Finding
from lightlint.linting import lint as linting
from lightlint.linting.lint import lint
from lightlint.sources.load import load as load_source
from lightlint.sources.source import UnreadableError

CLEAN = FAULT.replace("        torch.cuda.empty_cache()\n", "")


def fixtures() -> list[Path]:
    return sorted(path for path in (ROOT / "fixtures").rglob("*") if path.suffix in {".py", ".ipynb"})


def found(path: Path) -> tuple[Finding, ...]:
    linted = lint(load_source(path), load({}, isolated=True), Projects())
    assert not linted.crashes
    return linted.findings


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are parsed by libcst."""
    texts: list[str] = []
    parse = linting.parse
    monkeypatch.setattr(linting, "parse", lambda source: texts.append(source.text) or parse(source))
    return texts


COMMENTED = FAULT.replace("empty_cache()", "empty_cache(  # each time\n        )")


def test_only_what_a_sketch_does_not_hold_is_parsed_for(tmp_path: Path, parsed: list[str]) -> None:
    for name, text in (("clean.py", CLEAN), ("faulty.py", FAULT), ("commented.py", COMMENTED)):
        (tmp_path / name).write_text(text)
    assert not found(tmp_path / "clean.py")
    assert [each.name for each in found(tmp_path / "faulty.py")] == ["empty-cache-in-loop"]
    assert not parsed
    assert [each.name for each in found(tmp_path / "commented.py")] == ["empty-cache-in-loop"]
    assert parsed == [COMMENTED]


def test_syntax_without_a_sketch_is_parsed(tmp_path: Path, parsed: list[str]) -> None:
    text = FAULT + "    try:\n        pass\n    except* ValueError:\n        pass\n"
    (tmp_path / "train.py").write_text(text)
    assert [each.name for each in found(tmp_path / "train.py")] == ["empty-cache-in-loop"]
    assert parsed == [text]


@pytest.mark.parametrize("each", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_fixtures_have_the_same_findings(each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from lightlint.linting import screen

    def all_findings() -> dict[str, tuple[Finding, ...]]:
        every: dict[str, tuple[Finding, ...]] = {}
        for path in fixtures()[::each]:
            try:
                every[str(path)] = found(path)
            except UnreadableError:
                continue
        return every

    screened = all_findings()
    monkeypatch.setattr(screen, "screened", lambda text, tree, pages, *given: pages)
    assert any(screened.values())
    assert screened == all_findings()
