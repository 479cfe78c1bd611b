"""The pipeline: paths to files, to what is known of them from earlier runs, to findings, and with `fix` to new files.

Nothing that lints is imported before a file has to be linted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lightlint.config.settings import Settings
from lightlint.results import Changed, Problem, Progress, Result, merged
from lightlint.sources.discover import discover

if TYPE_CHECKING:
    from lightlint.cache.store import Cache
    from lightlint.facts.project.project import Projects

__all__ = ["Changed", "Problem", "Progress", "Result", "Shard", "check", "check_text", "fix", "fix_text"]


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` parts of the files, the `number`th from 1; every n-th file, so that all take about as long."""

    number: int
    count: int

    def of(self, files: list[Path]) -> list[Path]:
        """Its files, in their order; those of all shards together are all files, each once."""
        return files[self.number - 1 :: self.count]


WHOLE = Shard(1, 1)


def files_of(
    paths: Sequence[str], settings: Settings, ignored: dict[str, str] | None = None
) -> tuple[list[Path], Result]:
    """The files that a run over paths looks at, and what of the paths is not there; `ignored` as `discover` takes it."""
    files, missing = discover(
        paths,
        exclude=settings.exclude,
        respect_gitignore=settings.respect_gitignore,
        force_exclude=settings.force_exclude,
        root=settings.file.parent if settings.file else None,
        ignored=ignored,
    )
    return files, Result(problems=tuple(Problem(each.filename, each.message) for each in missing))


def check(
    paths: Sequence[str],
    settings: Settings,
    *,
    cache: Cache | None = None,
    jobs: int | str | None = 1,
    shard: Shard = WHOLE,
    timed: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Lint files and directories.

    Args:
        paths: what to lint.
        settings: those of the working directory.
        cache: where findings of earlier runs are, and those of this one go.
        jobs: how many processes share the work, or the address of a Dask scheduler; None sizes them to the work.
        shard: which part of the files.
        timed: say what takes how long.
        progress: told the number of files done and of all.
    """
    files, missing = files_of(paths, settings)
    results = _results(shard.of(files), settings, cache, jobs, progress, timed=timed)
    return _at_home(merged([missing, *results]), files, settings)


def _results(
    files: Sequence[Path],
    settings: Settings,
    cache: Cache | None,
    jobs: int | str | None,
    progress: Progress | None,
    *,
    timed: bool = False,
) -> list[Result]:
    """What is found in files, one by one: by earlier runs where it still stands, else now."""
    found: dict[int, Result] = {}
    if cache is not None:
        for number, path in enumerate(files):
            result = cache.find(path, settings.for_path(path))
            if result is not None:
                found[number] = result
    if len(found) < len(files):
        from lightlint.linting import batch
        from lightlint.pipeline.jobs import lint_files

        open_ones = [number for number in range(len(files)) if number not in found]
        done = len(found)

        def advance(ready: int, _total: int) -> None:
            if progress is not None:
                progress(done + ready, len(files))

        one = batch.timed if timed else batch.checked
        results = lint_files([files[number] for number in open_ones], settings, cache, jobs, advance, one)
        found.update(zip(open_ones, results, strict=True))
    if cache is not None:
        cache.save()
    return [found[number] for number in range(len(files))]


def fix(
    paths: Sequence[str],
    settings: Settings,
    *,
    unsafe: bool,
    write_files: bool,
    cache: Cache | None = None,
    jobs: int | str | None = 1,
    shard: Shard = WHOLE,
    progress: Progress | None = None,
) -> Result:
    """Lint files and directories as `check`, and repair those in which something can be repaired.

    Args:
        unsafe: also apply fixes that may change what the program means.
        write_files: False only says what would change.
    """
    discovered, missing = files_of(paths, settings)
    files = shard.of(discovered)
    results = _results(files, settings, cache, jobs, progress)
    due = [
        number for number, path in enumerate(files) if _is_due(results[number], settings.for_path(path), unsafe=unsafe)
    ]
    if due:
        from lightlint.linting.batch import Fixer
        from lightlint.pipeline.jobs import lint_files

        fixer = Fixer(unsafe, {str(files[number]): results[number].findings for number in due})
        repaired = lint_files([files[number] for number in due], settings, None, jobs, lambda *_: None, fixer)
        for number, result in zip(due, repaired, strict=True):
            results[number] = _written(results[number], result) if write_files else _told(results[number], result)
    result = merged([missing, *results])
    changed = {each.filename for each in result.changed}  # in which nothing stands where it stood
    return _at_home(result, [each for each in discovered if str(each) not in changed], settings)


def _at_home(result: Result, files: Iterable[Path], settings: Settings) -> Result:
    """A result with the findings where their causes lie."""
    if all(finding.cause is None for finding in result.findings):
        return result
    from lightlint.pipeline.homes import at_home

    return replace(result, findings=at_home(result.findings, files, settings))


def _told(before: Result, after: Result) -> Result:
    """What a repair gave, with the problems that were met before it."""
    problems = tuple(dict.fromkeys((*before.problems, *after.problems)))
    return replace(after, problems=problems, strangers=before.strangers, newer=before.newer)


def _written(before: Result, after: Result) -> Result:
    """Write the file that a repair changed; where that fails, what was found before stands."""
    from lightlint.sources.source import UnwritableError
    from lightlint.sources.write import write

    try:
        for changed in after.changed:
            write(changed.filename, changed.data)
    except UnwritableError as error:
        problem = Problem(after.changed[0].filename, str(error))
        return replace(before, problems=tuple(dict.fromkeys((*before.problems, *after.problems, problem))))
    return _told(before, after)


def _is_due(result: Result, settings: Settings, *, unsafe: bool) -> bool:
    """Whether there is something to repair among what was found in a file."""
    shown = [finding.fix for finding in result.findings if finding.fix is not None and settings.shows(finding)]
    return any(fix.is_wanted(unsafe=unsafe) for fix in shown)


def check_text(data: bytes, filename: str, settings: Settings) -> Result:
    """Lint text that stands for a file, as editors and `-` give it."""
    from lightlint.linting.batch import checked, unread
    from lightlint.sources.load import read
    from lightlint.sources.source import UnreadableError

    own = settings.for_path(filename)
    try:
        source = read(filename, data)
    except UnreadableError as error:
        return unread(filename, error, own)
    return _at_home(checked(source, own, _projects()), [Path(filename)], settings)


def fix_text(data: bytes, filename: str, settings: Settings, *, unsafe: bool) -> tuple[Result, bytes]:
    """Lint and repair text that stands for a file; the second value is the repaired text."""
    from lightlint.linting.batch import fixed_text, unread
    from lightlint.sources.load import read
    from lightlint.sources.source import UnreadableError

    own = settings.for_path(filename)
    try:
        source = read(filename, data)
    except UnreadableError as error:
        return unread(filename, error, own), data
    result = fixed_text(source, own, _projects(), unsafe=unsafe)
    return result, result.changed[0].data if result.changed else data


def _projects() -> Projects:
    from lightlint.facts.project.project import Projects

    return Projects()
