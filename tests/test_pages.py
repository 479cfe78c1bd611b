"""The rule pages are tests: their examples must say exactly what the pages say.

An example is linted twice, and all that is asserted of it hangs on these: by its page's rule alone with the gate off, and by
a run of all rules as people start it; one in ten also by all rules with the gate off, which takes as long as both, and one
in four in a test that is slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from rulebook import Example, examples

from lightlint.check import Check
from lightlint.config.settings import Settings, load
from lightlint.facts.project.project import Projects
from lightlint.finding import Applicability, Finding
from lightlint.fixes.apply import Fixed, fix_source
from lightlint.fixes.leftovers import leftovers
from lightlint.linting.lint import lint
from lightlint.pages import Page, all_pages
from lightlint.pipeline import run
from lightlint.pipeline.homes import at_home
from lightlint.sources.load import load as load_source
from lightlint.sources.source import Source
from lightlint.trees.parsing import parses

PAGES = [page for page in all_pages().values() if page.family != "lightlint"]
CASES = [pytest.param(page, example, id=f"{page.name}:{example.line}") for page in PAGES for example in examples(page)]
EXAMPLES = [pytest.param(case.values[1], id=case.id) for case in CASES]


@contextmanager
def checks_that_keep_no_state() -> Iterator[None]:
    """Fails a check that sets an attribute of its own, or one of `Check`'s anew."""
    own = frozenset(Check.__init__.__code__.co_names)

    def set_once(check: Check, name: str, value: object) -> None:
        assert name in own, f"{type(check).__name__} keeps state: it sets `{name}`"
        assert name not in vars(check), f"{type(check).__name__} keeps state: it sets `{name}` anew"
        object.__setattr__(check, name, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Check, "__setattr__", set_once)
        yield


@pytest.mark.parametrize(("page", "example"), CASES)
def test_example_says_what_its_page_says(page: Page, example: Example, tmp_path: Path) -> None:
    example.write(tmp_path)
    with checks_that_keep_no_state():
        alone = findings(tmp_path, settings_for(example, select=[page.code]), Projects(), gate=False)
    whole = run_findings(tmp_path, settings_for(example))
    assert_marked(page, example, alone, tmp_path)
    assert [finding for finding in whole if finding.code == page.code] == alone
    if example.kind == "good":
        assert [finding for finding in whole if finding.counts] == [], "a good example is clean of every rule"
    else:
        assert_repaired(page, example, alone, tmp_path)


@pytest.mark.parametrize("example", EXAMPLES[::10])
def test_the_gate_hides_nothing(example: Example, tmp_path: Path) -> None:
    assert_ungated(example, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES[1::4])
def test_the_gate_hides_nothing_of_more(example: Example, tmp_path: Path) -> None:
    assert_ungated(example, tmp_path)


def assert_ungated(example: Example, folder: Path) -> None:
    """What a run says of an example is what all rules say of it, those included whose needs its text does not meet."""
    example.write(folder)
    settings = settings_for(example)
    assert run_findings(folder, settings) == findings(folder, settings, Projects(), gate=False)


def assert_marked(page: Page, example: Example, found: Sequence[Finding], folder: Path) -> None:
    """The marks of an example are the findings in it; a mark that names no tier has the page's."""
    said = {(str(Path(f.filename).relative_to(folder)), f.cell, f.location.row, f.code, f.message): f for f in found}
    wanted = {(m.file, m.cell, m.row, m.code, m.message): m.tier for m in example.marks if not m.todo}
    assert said.keys() == wanted.keys()
    tiers = {place: tier or page.tier.value for place, tier in wanted.items()}
    assert {place: finding.tier.value for place, finding in said.items()} == tiers
    assert bool(example.marks) == (example.kind == "bad"), "a bad example needs a mark"


def assert_repaired(page: Page, example: Example, found: Sequence[Finding], folder: Path) -> None:
    """What the rule's fix makes of a bad example is its fixed block, and stays so."""
    offered = [finding.fix for finding in found if finding.fix]
    if page.fix is None:
        assert example.fixed is None
    if example.fixed is None:
        assert offered == [], "an offered fix needs a fixed block behind the bad one"
        return
    if page.fix is Applicability.SAFE:
        assert any(fix.applicability is Applicability.SAFE for fix in offered) or "unsafe" in page.path.read_text()
    settings = settings_for(example, select=[page.code])
    for name, text in example.fixed.files.items():
        once = repaired(load_source(folder / name), settings)
        assert once.source.text == text
        assert once.problems == ()
        again = repaired(once.source, settings)
        assert again.source.text == text
        assert not again.applied


def settings_for(example: Example, **more: object) -> Settings:
    return load({**example.settings, **more}, isolated=True)


def findings(folder: Path, settings: Settings, projects: Projects, *, gate: bool = True) -> list[Finding]:
    found: list[Finding] = []
    paths = sorted([*folder.rglob("*.py"), *folder.rglob("*.ipynb")])
    for path in paths:
        linted = lint(load_source(path), settings, projects, gate=gate)
        assert not linted.crashes, linted.crashes[0].traceback
        found.extend(linted.findings)
    return [*at_home(found, paths, settings)]


def run_findings(folder: Path, settings: Settings) -> list[Finding]:
    result = run.check([str(folder)], settings)
    assert not result.problems, result.problems
    return sorted(result.findings, key=lambda finding: (Path(finding.filename), finding.sort_key))


def repaired(source: Source, settings: Settings) -> Fixed:
    projects = Projects()
    return fix_source(
        source,
        lambda s: lint(s, settings, projects).findings,
        unsafe=True,
        parses=parses,
        tidy=lambda before, after: leftovers(before, after, projects),
    )
