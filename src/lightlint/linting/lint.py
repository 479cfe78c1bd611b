"""One source through every check that applies: gate, sketch, tree, facts, checks, suppression."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightlint.clock import Clock, stage
from lightlint.config.settings import Settings
from lightlint.finding import Applicability, Finding, Fix, Tier
from lightlint.linting.gate import checked_pages, met_by
from lightlint.linting.shown import shown
from lightlint.memo.compiled import kept_code
from lightlint.pages import Page, all_pages, find
from lightlint.sources.depth import too_deep
from lightlint.sources.source import Source
from lightlint.sources.suppress import Suppressions, Unused, codes_of
from lightlint.text import NOTEBOOK, TRAINS, Text
from lightlint.trees.parsing import UnparsableError, deep_recursion, no_collection, parse

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts
    from lightlint.facts.project.project import Projects

_TEMPLATE = re.compile(r"^[ \t]*\{%-? |\{\{ ?cookiecutter\.", re.MULTILINE)  # Python once Jinja has filled it in
SYNTAX, CRASH, UNUSED, UNFIXED = "LL000", "LL001", "LL002", "LL003"


@dataclass(frozen=True, slots=True)
class Crash:
    """A check that failed on a file: lightlint's own fault, told with the traceback."""

    filename: str
    rule: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Linted:
    """What linting one source gave."""

    findings: tuple[Finding, ...]
    crashes: tuple[Crash, ...] = ()
    newer: bool = False  # libcst reads it and Python does not: rules asked the text alone


def lint(
    source: Source, settings: Settings, projects: Projects, *, gate: bool = True, clock: Clock | None = None
) -> Linted:
    """Run the rules that the settings turn on for a source and whose `needs` its text meets.

    Args:
        source: what to lint.
        settings: those of the file.
        projects: where other files' facts come from.
        gate: False runs every rule on the parsed file, whatever its `needs` say and its sketch shows; the findings are
            the same, only slower.
        clock: told what takes how long.
    """
    active = settings.rules_for(source.filename)
    suppressions = Suppressions.read(source)
    if suppressions.skips_file:
        return Linted(())
    text = Text(source.text, source.shown, *NOTEBOOK[: source.is_notebook])
    if gate:
        with stage(clock, "gate"):
            pages = met_by(text, active)
    else:
        pages = [page for page in checked_pages() if page.name in active]
    due = bool(pages) or TRAINS.search(source.text) is not None or _starts_training(source, projects)
    found, crashes = _run(source, text, pages, active, settings, projects, clock, sketched=gate) if due else ([], [])
    unread = bool(pages) and text.tree is None
    newer = unread and not any(each.code == SYNTAX for each in found) and not _TEMPLATE.search(source.text)
    found += _broken_cells(source)
    on = {page.code for page in all_pages().values() if page.name in active}
    kept, silenced = suppressions.split((each for each in found if each.code in on), codes_of())
    if UNUSED in on:
        kept += [_idle(source, unused) for unused in suppressions.unused(silenced, codes_of(), on)]
    return Linted(
        tuple(sorted((shown(source, each) for each in kept), key=lambda each: each.sort_key)), tuple(crashes), newer
    )


def _starts_training(source: Source, projects: Projects) -> bool:
    """Whether other files meet what this one lacks."""
    from lightlint.facts.data.starters import starts_training

    path = Path(source.filename).absolute()
    return starts_training(projects.of(path), path, source.text)


def _run(
    source: Source,
    text: Text,
    pages: Sequence[Page],
    active: Set[str],
    settings: Settings,
    projects: Projects,
    clock: Clock | None,
    *,
    sketched: bool,
) -> tuple[list[Finding], list[Crash]]:
    """What rules find in a source; if it is `sketched`, only those look at its tree that need more than its sketch."""
    with kept_code("lint"), stage(clock, "imports"):
        from lightlint.facts.file import FileFacts
        from lightlint.linting.elsewhere import walk_with_others
        from lightlint.linting.screen import screened

    def facts_of(kind: Callable[..., FileFacts], module: Any) -> FileFacts:
        target = vars(settings.target)
        project = projects.of(Path(source.filename).absolute())
        known = {package: version for package, version in target.items() if version}
        return kind(source, module, project, distributed=settings.distributed, target=known)

    found: list[Finding] = []
    crashes: list[Crash] = []

    def failed(page: Page, _error: Exception) -> None:
        from traceback import format_exc

        crashes.append(Crash(source.filename, page.name, format_exc()))
        found.append(_own(CRASH, source, 0, 0, f"the check of `{page.name}` failed on this file"))

    with no_collection(), deep_recursion():
        if sketched:
            active = screened(text, pages, active, facts_of, found.append, clock)
            pages = [page for page in pages if page.name in active]
        if not active or (not pages and text.tree is None):
            return list(dict.fromkeys(found)), []
        deep = too_deep(source.text)
        if deep is not None:
            return [*found, _own(SYNTAX, source, deep, deep, "expressions nested too deeply to be parsed")], []
        try:
            with stage(clock, "parse"):
                module = parse(source)
        except UnparsableError as error:
            if _TEMPLATE.search(source.text):
                return found, []
            return [*found, _unread(source, error)], []
        with stage(clock, "tree"):
            facts = facts_of(FileFacts, module)
        walk_with_others(facts, text, pages, active, found.append, failed, clock)
        facts.release()
    return list(dict.fromkeys(found)), crashes


def _unread(source: Source, error: UnparsableError) -> Finding:
    """The finding for a text that is no Python of today: what the project's own Python reads is no fault of the program."""
    from lightlint.linting.old_python import is_of_old_python

    found = _own(SYNTAX, source, error.offset, error.offset, error.message)
    if not is_of_old_python(source.text, error.offset, error.message, Path(source.filename)):
        return found
    return replace(found, tier=Tier.NOTE, message=f"not looked at, written for an older Python: {error.message}")


def _broken_cells(source: Source) -> list[Finding]:
    """One finding for all cells that Python cannot read: an exercise with blanks to fill in has one in each."""
    if not source.broken:
        return []
    (offset, message), *others = source.broken
    more = f" ({len(others)} other cell{'s' if len(others) > 1 else ''} of this notebook cannot be read either)"
    return [_own(SYNTAX, source, offset, offset, message + more if others else message)]


def _own(code: str, source: Source, start: int, end: int, message: str) -> Finding:
    """A finding of lightlint about itself or about a file it cannot read."""
    page = find(code)
    assert page is not None
    cell = source.cell_at(start)
    where, until = source.locate(start), source.locate(end)
    number = cell.number if cell else None
    return Finding(code, page.name, page.tier, message, source.filename, start, end, where, until, number)


def _idle(source: Source, unused: Unused) -> Finding:
    finding = _own(UNUSED, source, unused.start, unused.end, f"`{unused.text}` suppresses nothing here")
    editable = source.editable((unused.edit,))
    fix = Fix(f"remove `{unused.text}` from the comment", Applicability.SAFE, (unused.edit,)) if editable else None
    return replace(finding, fix=fix)


def unreadable(filename: str, message: str) -> Finding:
    """The finding for a file that cannot be linted at all."""

    class _Nothing:
        def render(self, *_: Any) -> bytes:
            raise NotImplementedError

    return _own(SYNTAX, Source(filename, "", _Nothing()), 0, 0, message)
