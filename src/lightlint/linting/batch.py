"""One file after another through the checks, and with `fix` to new files."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lightlint.clock import Clock
from lightlint.config.settings import Settings
from lightlint.facts.project.project import Projects, Question
from lightlint.finding import Edit, Finding
from lightlint.fixes.apply import fix_source
from lightlint.linting.lint import Crash, Linted, lint, unreadable
from lightlint.memo.digest import digest
from lightlint.results import Changed, Problem, Result, Rewritten
from lightlint.sources.load import bytes_of, read
from lightlint.sources.source import Cell, ForeignError, Source, UnreadableError, UnwritableError
from lightlint.strangers import strangers_in
from lightlint.trees.parsing import no_collection, parses

_WASTE = 1_500_000  # objects that may be made and not be given back before the collector looks for those in circles: some 250 MB


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one file; `content` is a digest of its text, `asked` what its findings hang on at a project's root."""

    result: Result
    content: str = ""
    root: str = ""
    asked: frozenset[Question] = frozenset()


One = Callable[[Source, Settings, Projects], Result]


def outcomes(files: Iterable[Path], settings: Settings, one: One, projects: Projects) -> Iterator[Outcome]:
    """Take files one after another; the memory of their trees is given back now and then."""
    with no_collection():
        gc.freeze()  # what was imported stays: no collection below looks at it
        for path in files:
            yield _outcome(path, settings.for_path(path), one, projects)
            if gc.get_count()[0] > _WASTE:  # counted while the collector is off, too
                gc.collect()


def _outcome(path: Path, settings: Settings, one: One, projects: Projects) -> Outcome:
    try:
        data = bytes_of(path)
    except UnreadableError as error:
        return Outcome(unread(str(path), error, settings))
    projects.asked()  # what others asked is not this file's
    try:
        result = one(read(str(path), data), settings, projects)
    except UnreadableError as error:
        result = unread(str(path), error, settings)
    project = projects.of(path.absolute())
    return Outcome(result, digest(data), str(project.root), projects.asked())


def checked(source: Source, settings: Settings, projects: Projects) -> Result:
    """Lint a source."""
    return _result(source, lint(source, settings, projects), projects)


def timed(source: Source, settings: Settings, projects: Projects) -> Result:
    """Lint a source and say what took how long."""
    clock = Clock()
    linted = lint(source, settings, projects, clock=clock)
    return replace(_result(source, linted, projects), spent=clock.spent)


def _result(source: Source, linted: Linted, projects: Projects) -> Result:
    path = Path(source.filename).absolute()
    names = (name for name in strangers_in(source.text) if projects.of(path).find_module(name, path.parent) is None)
    strangers = tuple((source.filename, name) for name in names)
    newer = (source.filename,) if linted.newer else ()
    return Result(linted.findings, tuple(map(_crashed, linted.crashes)), files=1, strangers=strangers, newer=newer)


@dataclass(frozen=True, slots=True)
class Fixer:
    """Repairs sources and writes no file, so that each is repaired beside the others as they were, in any order.

    Args:
        unsafe: also apply fixes that may change what the program means.
        found: what linting finds in the files, by their paths.
    """

    unsafe: bool
    found: Mapping[str, tuple[Finding, ...]]

    def __call__(self, source: Source, settings: Settings, projects: Projects) -> Result:
        found = self.found.get(source.filename)
        if found is not None and not all(_stands(each, source) for each in found):
            found = None  # somebody wrote the file since
        return fixed_text(source, settings, projects, unsafe=self.unsafe, found=found)


def fixed_text(
    source: Source,
    settings: Settings,
    projects: Projects,
    *,
    unsafe: bool,
    found: Sequence[Finding] | None = None,
) -> Result:
    """Repair a source, and say what is left to find in it; `found` is what linting it finds, where that is known."""
    crashes: list[Crash] = []

    def once(text: Source) -> Sequence[Finding]:
        linted: Linted = lint(text, settings, projects)
        crashes.extend(linted.crashes)
        return _offered(linted.findings, settings)

    def tidy(before: Source, after: Source) -> Sequence[Edit]:
        from lightlint.fixes.leftovers import leftovers

        return leftovers(before, after, projects)

    known = _offered(found, settings) if found is not None else None
    fixed = fix_source(source, once, unsafe=unsafe, parses=parses, found=known, tidy=tidy)
    problems = tuple(map(_crashed, dict.fromkeys(crashes)))
    changed: tuple[Changed, ...] = ()
    if fixed.source is not source:
        codes = tuple(finding.code for finding in fixed.applied)
        try:
            data = fixed.source.render()
        except UnwritableError as error:
            before = checked(source, settings, projects)
            return Result(before.findings, (*problems, Problem(source.filename, str(error))), (), 1)
        changed = (Changed(source.filename, _rewritten(source, fixed.source), codes, data),)
    active = settings.rules_for(source.filename)
    failed = (finding for finding in fixed.problems if finding.name in active)
    return Result((*fixed.left, *failed), problems, changed, 1)


def _offered(findings: Sequence[Finding], settings: Settings) -> list[Finding]:
    """Findings, without the fixes of those that are not shown."""
    return [finding if settings.shows(finding) else replace(finding, fix=None) for finding in findings]


def _stands(finding: Finding, source: Source) -> bool:
    """Whether a finding fits a source: the lines around it are what they were."""
    return finding.end <= len(source.text) and source.excerpt(finding.start, finding.end) == finding.excerpt


def _rewritten(before: Source, after: Source) -> tuple[Rewritten, ...]:
    """What differs: the whole text, or cell by cell what the notebook has, magics included."""
    if not before.is_notebook:
        return (Rewritten(before.filename, before.text, after.text),)
    cells = zip(before.cells, after.cells, strict=True)
    texts = (
        Rewritten(f"{before.filename}:cell {old.number}", _ended(before, old), _ended(after, new)) for old, new in cells
    )
    return tuple(each for each in texts if each.before != each.after)


def _ended(source: Source, cell: Cell) -> str:
    """A cell's text with a line end behind its last row, which notebooks leave out."""
    text = source.shown[cell.start : cell.end]
    return text if text.endswith("\n") or not text else f"{text}\n"


def unread(filename: str, error: UnreadableError, settings: Settings) -> Result:
    """What is said of a file that cannot be read."""
    if isinstance(error, ForeignError):
        return Result(problems=(Problem(filename, str(error), fatal=False),), files=1)
    finding = unreadable(filename, str(error))
    return Result((finding,) if finding.name in settings.rules_for(filename) else (), files=1)


def shares(sizes: Sequence[int], count: int) -> list[list[int]]:
    """The indices of files in so many shares of about the same size."""
    parts: list[list[int]] = [[] for _ in range(count)]
    filled = [0] * count
    for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        least = filled.index(min(filled))
        parts[least].append(index)
        filled[least] += sizes[index] + 1
    return [sorted(part) for part in parts]


def _crashed(crash: Crash) -> Problem:
    return Problem(crash.filename, f"the check of `{crash.rule}` failed", details=crash.traceback)
