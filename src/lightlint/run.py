"""The pipeline: paths to sources to findings, and with `fix` to new files."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lightlint.facts.project import Projects
from lightlint.finding import Finding
from lightlint.fixes.apply import Fixed, fix_source
from lightlint.lint import Crash, Linted, lint, no_collection, parses, unreadable
from lightlint.settings import Settings
from lightlint.sources.discover import discover
from lightlint.sources.load import load, read
from lightlint.sources.source import ForeignError, Source, UnreadableError, UnwritableError
from lightlint.sources.write import write

_WASTE = 600_000  # bytes of source whose facts may wait for the collector; a tree is a hundred times its text
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something lightlint could not do; `fatal` ones make the exit status 2."""

    filename: str
    message: str
    fatal: bool = True
    details: str = ""


@dataclass(frozen=True, slots=True)
class Changed:
    """A file that fixes changed, or would change: its text before and after and the codes of what was repaired."""

    filename: str
    before: str
    after: str
    fixed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What a run found and did."""

    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    changed: tuple[Changed, ...] = ()
    files: int = 0


def check(paths: Sequence[str], settings: Settings, *, progress: Progress | None = None) -> Result:
    """Lint files and directories."""
    return _each_file(paths, settings, lambda source, own, projects: _checked(source, own, projects), progress)


def fix(
    paths: Sequence[str], settings: Settings, *, unsafe: bool, write_files: bool, progress: Progress | None = None
) -> Result:
    """Lint and repair files and directories; `write_files` False only says what would change."""

    def one(source: Source, own: Settings, projects: Projects) -> Result:
        result, fixed = _fixed(source, own, projects, unsafe=unsafe)
        if write_files and fixed.source is not source:
            try:
                write(source.filename, fixed.source.render())
            except UnwritableError as error:
                before = _checked(source, own, projects)
                return Result(before.findings, (*result.problems, Problem(source.filename, str(error))), (), 1)
        return result

    return _each_file(paths, settings, one, progress)


def check_text(data: bytes, filename: str, settings: Settings) -> Result:
    """Lint text that stands for a file, as editors and `-` give it."""
    try:
        source = read(filename, data)
    except UnreadableError as error:
        return _unread(filename, error, settings.for_path(filename))
    return _checked(source, settings.for_path(filename), Projects())


def fix_text(data: bytes, filename: str, settings: Settings, *, unsafe: bool) -> tuple[Result, bytes]:
    """Lint and repair text that stands for a file; the second value is the repaired text."""
    try:
        source = read(filename, data)
    except UnreadableError as error:
        return _unread(filename, error, settings.for_path(filename)), data
    result, fixed = _fixed(source, settings.for_path(filename), Projects(), unsafe=unsafe)
    return result, fixed.source.render() if fixed.source is not source else data


def _each_file(
    paths: Sequence[str],
    settings: Settings,
    one: Callable[[Source, Settings, Projects], Result],
    progress: Progress | None,
) -> Result:
    files, missing = discover(
        paths,
        exclude=settings.exclude,
        respect_gitignore=settings.respect_gitignore,
        force_exclude=settings.force_exclude,
        root=settings.file.parent if settings.file else None,
    )
    projects = Projects()
    results = [Result(problems=tuple(Problem(each.filename, each.message) for each in missing))]
    waste = 0
    with no_collection():
        gc.freeze()  # what was imported stays: no collection below looks at it
        for number, path in enumerate(files):
            results.append(_read_and(path, settings.for_path(path), projects, one))
            waste += _size(path)
            if waste > _WASTE:
                gc.collect()
                waste = 0
            if progress is not None:
                progress(number + 1, len(files))
    return _merged(results)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read_and(
    path: Path, settings: Settings, projects: Projects, one: Callable[[Source, Settings, Projects], Result]
) -> Result:
    try:
        source = load(path)
    except UnreadableError as error:
        return _unread(str(path), error, settings)
    return one(source, settings, projects)


def _unread(filename: str, error: UnreadableError, settings: Settings) -> Result:
    if isinstance(error, ForeignError):
        return Result(problems=(Problem(filename, str(error), fatal=False),), files=1)
    finding = unreadable(filename, str(error))
    return Result((finding,) if finding.name in settings.rules_for(filename) else (), files=1)


def _checked(source: Source, settings: Settings, projects: Projects) -> Result:
    linted = lint(source, settings, projects)
    return Result(linted.findings, tuple(map(_crashed, linted.crashes)), files=1)


def _fixed(source: Source, settings: Settings, projects: Projects, *, unsafe: bool) -> tuple[Result, Fixed]:
    crashes: list[Crash] = []

    def once(text: Source) -> Sequence[Finding]:
        linted: Linted = lint(text, settings, projects)
        crashes.extend(linted.crashes)
        return [finding if settings.shows(finding) else replace(finding, fix=None) for finding in linted.findings]

    fixed = fix_source(source, once, unsafe=unsafe, parses=parses)
    changed: tuple[Changed, ...] = ()
    if fixed.source is not source:
        codes = tuple(finding.code for finding in fixed.applied)
        changed = (Changed(source.filename, source.text, fixed.source.text, codes),)
    active = settings.rules_for(source.filename)
    failed = (finding for finding in fixed.problems if finding.name in active)
    return Result((*fixed.left, *failed), tuple(map(_crashed, dict.fromkeys(crashes))), changed, 1), fixed


def _crashed(crash: Crash) -> Problem:
    return Problem(crash.filename, f"the check of `{crash.rule}` failed", details=crash.traceback)


def _merged(results: Iterable[Result]) -> Result:
    each = tuple(results)
    return Result(
        tuple(finding for result in each for finding in result.findings),
        tuple(problem for result in each for problem in result.problems),
        tuple(change for result in each for change in result.changed),
        sum(result.files for result in each),
    )
