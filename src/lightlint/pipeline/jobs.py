"""The files of a run, shared among processes where there is enough to do; what comes out is the same in any number."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lightlint.cache.store import Kept
from lightlint.config.settings import Settings
from lightlint.facts.project.project import Projects, Question
from lightlint.facts.project.questions import Answers
from lightlint.linting.batch import One, Outcome, checked, outcomes, shares
from lightlint.memo.digest import digest
from lightlint.memo.looked import LOOKED
from lightlint.results import Problem, Progress, Result
from lightlint.sources.load import bytes_of
from lightlint.sources.source import UnreadableError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from lightlint.cache.store import Cache

_SHARE = 500_000  # bytes of source that keep a forked process busy for longer than it takes to start
_SPAWNED_SHARE = 2_500_000  # one that is spawned imports all anew
_DIED = "the process that linted it ended before it was done"


@dataclass(frozen=True, slots=True)
class _Linted:
    """What came of a file, by its number; `kept` is what the cache keeps of it besides."""

    index: int
    result: Result
    kept: Kept | None = None


def lint_files(
    files: Sequence[Path],
    settings: Settings,
    cache: Cache | None,
    jobs: int | str | None,
    progress: Progress,
    one: One = checked,
) -> list[Result]:
    """Lint files that no cache vouches for at first sight, each by `one`; results in the order of the files."""
    projects = cache.projects if cache is not None else Projects()
    results: dict[int, Result] = {}
    if cache is not None:
        results = _recalled(files, settings, cache, projects)
    numbers = [number for number in range(len(files)) if number not in results]
    left = [files[number] for number in numbers]
    for linted in _linted(left, settings, projects, jobs, cache, one):
        results[numbers[linted.index]] = linted.result
        progress(len(results), len(files))
        if cache is not None and linted.kept is not None:
            path = left[linted.index]
            cache.keep(linted.kept, path, settings.for_path(path), linted.result)
    if cache is not None:
        cache.seen(projects.glimpses())
    return [results[number] for number in range(len(files))]


def _recalled(files: Sequence[Path], settings: Settings, cache: Cache, projects: Projects) -> dict[int, Result]:
    results: dict[int, Result] = {}
    for number, path in enumerate(files):
        own = settings.for_path(path)
        if cache.knows(path, own):
            try:
                content = digest(bytes_of(path))
            except UnreadableError:
                continue
            result = cache.recall(path, content, own, projects)
            if result is not None:
                results[number] = result
    return results


def _linted(
    files: Sequence[Path], settings: Settings, projects: Projects, jobs: int | str | None, cache: Cache | None, one: One
) -> Iterator[_Linted]:
    """Lint files in this process, in several, or on the cluster of an address; in the latter they come as they are done."""
    sizes = [_size(path) for path in files]
    if isinstance(jobs, str):
        from lightlint.pipeline.cluster import lint_on

        yield from (_Linted(number, result) for number, result in lint_on(jobs, files, sizes, settings, one))
        return
    forks = sys.platform == "linux" and threading.active_count() == 1
    workers = _sized(sum(sizes), forks) if jobs is None else jobs
    workers = min(workers, len(files))
    if workers > 1:
        yield from _shared(files, sizes, settings, workers, cache, one, "fork" if forks else "spawn")
        return
    for index, outcome in enumerate(outcomes(files, settings, one, projects)):
        yield _Linted(index, outcome.result, _kept(files[index], outcome, projects, cache) if cache else None)


def _kept(path: Path, outcome: Outcome, projects: Projects, answers: Cache | _Asked) -> Kept | None:
    if not outcome.root or any(problem.fatal for problem in outcome.result.problems):
        return None
    answered = [(question, answers.answer(projects, outcome.root, question)) for question in sorted(outcome.asked)]
    projects.asked()  # what answering asked is no file's
    return Kept(os.path.abspath(path), outcome.content, outcome.root, tuple(answered))  # noqa: PTH100


def _sized(size: int, forks: bool) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, size // (_SHARE if forks else _SPAWNED_SHARE)))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _shared(
    files: Sequence[Path],
    sizes: Sequence[int],
    settings: Settings,
    workers: int,
    cache: Cache | None,
    one: One,
    start: str,
) -> Iterator[_Linted]:
    from multiprocessing import get_context
    from multiprocessing.connection import wait

    context = get_context(start)
    open_ends: dict[Connection, set[int]] = {}
    processes = []
    try:
        for share in shares(sizes, workers):
            ours, theirs = context.Pipe(duplex=False)
            chosen = [(index, files[index]) for index in share]
            known = cache.summaries() if cache else None
            process = context.Process(target=_work, args=(theirs, chosen, settings, known, one), daemon=True)  # type: ignore[attr-defined]
            process.start()
            theirs.close()
            processes.append(process)
            open_ends[ours] = set(share)
        while open_ends:
            for end in wait(list(open_ends)):
                yield from _received(cast("Connection", end), open_ends, files, cache)
    finally:
        for process in processes:
            if open_ends:
                process.terminate()
            process.join()


def _received(
    end: Connection, open_ends: dict[Connection, set[int]], files: Sequence[Path], cache: Cache | None
) -> Iterator[_Linted]:
    """What one message of a worker says; one that ended early leaves its files with a problem."""
    try:
        message = end.recv()
    except EOFError:
        message = None
    if isinstance(message, _Linted):
        open_ends[end].discard(message.index)
        yield message
        return
    lost = open_ends.pop(end)
    end.close()
    if isinstance(message, Exception):
        raise message
    if message is not None:
        LOOKED.update(message[0])
        if cache is not None:
            cache.summaries().update(message[1])
            cache.seen(message[2])
    yield from (_Linted(index, Result((), (Problem(str(files[index]), _DIED),), (), 1)) for index in sorted(lost))


class _Asked:
    """The answers that a worker gives to what its files asked."""

    def __init__(self, summaries: dict[str, tuple[str, str]]) -> None:
        self.summaries = summaries
        self._by_root: dict[str, Answers] = {}

    def answer(self, projects: Projects, root: str, question: Question) -> str:
        if root not in self._by_root:
            self._by_root[root] = Answers(projects.at(Path(root)), self.summaries)
        return self._by_root[root](question)


def _work(
    end: Connection,
    share: Sequence[tuple[int, Path]],
    settings: Settings,
    summaries: dict[str, tuple[str, str]] | None,
    one: One,
) -> None:
    """What a worker does: it sends each file's result, then what it looked at; an error ends it, and the run."""
    try:
        projects = Projects()
        answers = _Asked(summaries or {})
        paths = [path for _, path in share]
        for (index, path), outcome in zip(share, outcomes(paths, settings, one, projects), strict=True):
            kept = _kept(path, outcome, projects, answers) if summaries is not None else None
            end.send(_Linted(index, outcome.result, kept))
        end.send((LOOKED, answers.summaries, projects.glimpses() if summaries is not None else {}))
    except KeyboardInterrupt:
        os._exit(1)
    except Exception as error:
        end.send(error)
