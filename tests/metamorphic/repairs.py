"""Repairs rewritten programs, and says what is wrong with what came out."""

from __future__ import annotations

import ast
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pyflakes.checker import Checker
from rulebook import Example, examples

from lightlint.config.settings import Settings, load
from lightlint.facts.project.project import Projects
from lightlint.finding import Finding
from lightlint.fixes.apply import Fixed, fix_source
from lightlint.fixes.leftovers import leftovers
from lightlint.linting.lint import lint
from lightlint.pages import Page, all_pages
from lightlint.sources.load import load as load_source
from lightlint.sources.source import Source
from lightlint.trees.parsing import parses

from .cases import COMMENT, Case
from .measure import rewritten
from .rewrites import Rewrite


@dataclass(frozen=True)
class Broken:
    """What a repair did wrong to a rewritten case."""

    case: Case
    rewrite: str
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.case.where}, {self.rewrite}: {self.what}"


def repairable() -> list[Case]:
    """All bad examples of rules that have a fix, but for notebooks and what says something in comments."""
    pages = [page for page in all_pages().values() if page.fix is not None and page.family != "lightlint"]
    return [_case(page, each) for page in pages for each in examples(page) if each.kind == "bad" and _is_plain(each)]


def _is_plain(example: Example) -> bool:
    return not any(name.endswith(".ipynb") or COMMENT.search(text) for name, text in example.files.items())


def _case(page: Page, example: Example) -> Case:
    target = max(example.files, key=lambda name: (sum(m.file == name for m in example.marks), len(example.files[name])))
    where = f"{page.path.parent.name}/{page.path.name}:{example.line}"
    rows = tuple(sorted({mark.row for mark in example.marks if mark.file == target}))
    return Case(page.name, where, example.files, target, rows, False, (page.code,), example.settings)


def broken(case: Case, rewrites: Iterable[Rewrite]) -> Iterator[Broken]:
    """What the fix of a case's rule does wrong to the case as it is rewritten."""
    for rewrite in rewrites:
        files = rewritten(case, rewrite, None)
        if files is not None:
            texts = {name: text for name, (text, _) in files.items()}
            for what, before, after in _wrongs(case, texts):
                yield Broken(case, rewrite.name, what, before, after)


@cache
def _settings(rules: tuple[str, ...], given: str) -> Settings:
    return load({**ast.literal_eval(given), **({"select": list(rules)} if rules else {})}, isolated=True)


def _wrongs(case: Case, texts: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    folder = Path(tempfile.mkdtemp(prefix="repaired-"))
    try:
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        for name in texts:
            source = load_source(folder / name)
            before, after = source.text, ""
            for what, after in _wrong(case, source):
                yield what, before, after
    finally:
        shutil.rmtree(folder)


def _wrong(case: Case, source: Source) -> Iterator[tuple[str, str]]:
    own, every = (_settings(rules, repr(case.settings)) for rules in (case.rules, ()))
    found = findings(source, own)
    if not any(each.fix for each in found):
        return
    fixed = repaired(source, own)
    text = fixed.source.text
    if fixed.problems:
        yield f"LL003: {fixed.problems[0].message}", text
    if not parses(text):
        yield "does not parse", text
        return
    again = repaired(fixed.source, own)
    if again.applied or again.source.text != text:
        yield "is repaired again", text
    due = Counter(map(_kind, (each for each in found if each.fix)))
    still = Counter(map(_kind, fixed.left))
    for kind, count in due.items():
        if still[kind] > Counter(map(_kind, found))[kind] - count:
            yield f"{kind[0]} is still found: {kind[1]}", text
    new = Counter(each.code for each in findings(fixed.source, every) if each.counts)
    new -= Counter(each.code for each in findings(source, every) if each.counts)
    if new:
        yield f"now has {', '.join(new)}", text
    if names := _flaws(text) - _flaws(source.text):
        yield f"now has {', '.join(names)}", text


def findings(source: Source, settings: Settings) -> list[Finding]:
    linted = lint(source, settings, Projects())
    assert not linted.crashes, linted.crashes[0].traceback
    return list(linted.findings)


def repaired(source: Source, settings: Settings) -> Fixed:
    return fix_source(
        source,
        lambda text: findings(text, settings),
        unsafe=True,
        parses=parses,
        tidy=lambda before, after: leftovers(before, after, Projects()),
    )


def _kind(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.message


def _flaws(text: str) -> Counter[str]:
    """What pyflakes says of a text: names that are nowhere bound, and how many imports nobody uses."""
    messages = Checker(ast.parse(text)).messages
    counted = [each.message % each.message_args for each in messages if "undefined" in each.message]
    return Counter(
        [*counted, *(each.message for each in messages if "unused" in each.message and "import" in each.message)]
    )
