"""The rule pages are tests: their examples must say exactly what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest
from rulebook import Example, examples

from lightlint import run
from lightlint.facts.project import Projects
from lightlint.finding import Applicability, Finding
from lightlint.fixes.apply import Fixed, fix_source
from lightlint.lint import lint
from lightlint.pages import Page, all_pages
from lightlint.parsing import parses
from lightlint.settings import Settings, load
from lightlint.sources.load import load as load_source
from lightlint.sources.source import Source

PAGES = [page for page in all_pages().values() if page.family != "lightlint"]
CASES = [pytest.param(page, example, id=f"{page.name}:{example.line}") for page in PAGES for example in examples(page)]


def settings_for(example: Example, **more: object) -> Settings:
    return load({**example.settings, **more}, isolated=True)


def findings(folder: Path, settings: Settings, *, gate: bool = True) -> list[Finding]:
    projects = Projects()
    found: list[Finding] = []
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.ipynb")]):
        linted = lint(load_source(path), settings, projects, gate=gate)
        assert not linted.crashes, linted.crashes[0].traceback
        found.extend(linted.findings)
    return found


def repaired(source: Source, settings: Settings) -> Fixed:
    projects = Projects()
    return fix_source(source, lambda s: lint(s, settings, projects).findings, unsafe=True, parses=parses)


@pytest.mark.parametrize(("page", "example"), CASES)
def test_example_says_what_its_page_says(page: Page, example: Example, tmp_path: Path) -> None:
    example.write(tmp_path)
    settings = settings_for(example, select=[page.code])
    found = findings(tmp_path, settings)
    said = {(str(Path(f.filename).relative_to(tmp_path)), f.cell, f.location.row, f.code, f.message) for f in found}
    wanted = {(mark.file, mark.cell, mark.row, mark.code, mark.message) for mark in example.marks if not mark.todo}
    assert said == wanted
    assert bool(wanted) == any(not mark.todo for mark in example.marks)
    for mark in example.marks:
        if mark.tier:
            tiers = {
                f.tier.value
                for f in found
                if (f.cell, f.location.row, f.message) == (mark.cell, mark.row, mark.message)
            }
            assert tiers == {mark.tier}
    if example.kind == "bad":
        assert example.marks, "a bad example needs a mark"


@pytest.mark.parametrize(("page", "example"), CASES)
def test_gate_hides_nothing(page: Page, example: Example, tmp_path: Path) -> None:
    example.write(tmp_path)
    settings = settings_for(example)
    assert findings(tmp_path, settings) == findings(tmp_path, settings, gate=False)


@pytest.mark.parametrize(("page", "example"), [case for case in CASES if case.values[1].kind == "good"])
def test_good_example_is_clean_of_every_rule(page: Page, example: Example, tmp_path: Path) -> None:
    example.write(tmp_path)
    loud = [finding for finding in findings(tmp_path, settings_for(example)) if finding.counts]
    assert loud == []


@pytest.mark.parametrize(("page", "example"), [case for case in CASES if case.values[1].kind == "bad"])
def test_fix_gives_the_fixed_example(page: Page, example: Example, tmp_path: Path) -> None:
    example.write(tmp_path)
    settings = settings_for(example, select=[page.code])
    offered = [finding.fix for finding in findings(tmp_path, settings) if finding.fix]
    if page.fix is None:
        assert example.fixed is None
        assert offered == []
        return
    if example.fixed is None:
        assert offered == [], "an offered fix needs a fixed block behind the bad one"
        return
    if page.fix is Applicability.SAFE:
        assert any(fix.applicability is Applicability.SAFE for fix in offered) or "unsafe" in page.path.read_text()
    for name, text in example.fixed.files.items():
        once = repaired(load_source(tmp_path / name), settings)
        assert once.source.text == text
        again = repaired(once.source, settings)
        assert again.source.text == text
        assert not again.applied


def test_run_and_lint_agree(tmp_path: Path) -> None:
    """The pages are judged through `lint`; a whole run over the files of an example says the same."""
    for number, case in enumerate(case for case in CASES if case.values[1].kind == "bad"):
        example: Example = case.values[1]
        example.write(tmp_path / str(number))
        result = run.check([str(tmp_path / str(number))], settings_for(example, notes=True))
        found = {(finding.code, finding.message) for finding in result.findings}
        assert found >= {(mark.code, mark.message) for mark in example.marks if not mark.todo}
