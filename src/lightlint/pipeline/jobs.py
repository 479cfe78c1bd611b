"""The files of a run, shared among processes where there is enough to do; what comes out is the same in any number."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lightlint.cache.store import Kept
from lightlint.config.settings import Settings
from lightlint.facts.project.project import Projects, Question
from lightlint.facts.project.questions import Answers
from lightlint.linting.batch import One, Outcome, checked, outcomes
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
_AHEAD = 2  # files that a process is told at once, so that it need not wait for the next
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


class _Runs:
    """The files that no process has yet: each goes through a run of neighbours, which import much the same, then takes the last
    ones of whoever has most left."""

    def __init__(self, sizes: Sequence[int], count: int) -> None:
        self._runs: list[deque[int]] = [deque() for _ in range(count)]
        whole, before = sum(sizes) + len(sizes), 0
        for index, size in enumerate(sizes):
            self._runs[before * count // whole].append(index)
            before += size + 1

    def next(self, number: int) -> int | None:
        """The next file of one process, None where none is left."""
        if self._runs[number]:
            return self._runs[number].popleft()
        longest = max(self._runs, key=len)
        return longest.pop() if longest else None


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
    known = cache.summaries() if cache else None
    runs, left = _Runs(sizes, workers), set(range(len(files)))
    numbers: dict[Connection, int] = {}
    processes = []
    try:
        for number in range(workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, files, settings, known, one), daemon=True)  # type: ignore[attr-defined]
            process.start()
            theirs.close()
            processes.append(process)
            numbers[ours] = number
            for _ in range(_AHEAD):
                ours.send(runs.next(number))
        while numbers:
            for end in map(_as_connection, wait(list(numbers))):
                message = _received(end)
                if isinstance(message, _Linted):
                    with suppress(OSError):  # it has died since
                        end.send(runs.next(numbers[end]))
                    left.discard(message.index)
                    yield message
                    continue
                del numbers[end]
                end.close()
                if message is not None:
                    _note(message, cache)
        yield from (_Linted(index, Result((), (Problem(str(files[index]), _DIED),), (), 1)) for index in sorted(left))
    finally:
        for process in processes:
            if numbers:
                process.terminate()
            process.join()


def _as_connection(end: object) -> Connection:
    return cast("Connection", end)


def _received(end: Connection) -> object:
    """What one message of a worker says, None of one that ended early; an error in it ends the run."""
    try:
        message = end.recv()
    except (EOFError, ConnectionResetError):
        return None
    if isinstance(message, Exception):
        raise message
    return cast("object", message)


def _note(said: Any, cache: Cache | None) -> None:
    """Note what a worker looked at."""
    looked, summaries, glimpses = said
    LOOKED.update(looked)
    if cache is not None:
        cache.summaries().update(summaries)
        cache.seen(glimpses)


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
    files: Sequence[Path],
    settings: Settings,
    summaries: dict[str, tuple[str, str]] | None,
    one: One,
) -> None:
    """What a worker does: it sends the result of each file that it is told, then what it looked at; an error ends it, and the
    run."""
    try:
        projects = Projects()
        answers = _Asked(summaries or {})
        given: list[int] = []
        for outcome in outcomes(_given(end, files, given), settings, one, projects):
            kept = _kept(files[given[-1]], outcome, projects, answers) if summaries is not None else None
            end.send(_Linted(given[-1], outcome.result, kept))
        end.send((LOOKED, answers.summaries, projects.glimpses() if summaries is not None else {}))
    except KeyboardInterrupt:
        os._exit(1)
    except Exception as error:
        end.send(error)


def _given(end: Connection, files: Sequence[Path], numbers: list[int]) -> Iterator[Path]:
    """The files that a worker is told one by one; their numbers go into a list."""
    for number in iter(end.recv, None):
        numbers.append(number)
        yield files[number]
