"""What earlier runs found, and whether it still stands.

Findings of a file hang on its text, on the rules that ran, and on what was asked of its project. Where none of the paths
that the run looked at has changed since, they stand without a further look (`find`). Otherwise they stand if the text is
the same and every question has its old answer (`recall`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightlint.cache import folder
from lightlint.cache.codec import packed, unpacked
from lightlint.cache.stamps import NEVER, OF_FILE, Stamp, is_recent, stamp
from lightlint.digest import digest
from lightlint.looked import LOOKED
from lightlint.results import Problem, Result
from lightlint.settings import Settings

if TYPE_CHECKING:
    from lightlint.facts.project import Projects, Question
    from lightlint.facts.questions import Answers

Answered = tuple["Question", str]


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a linted file: its absolute path, a digest of its text, and what it asked of which project."""

    path: str
    content: str
    root: str
    answers: tuple[Answered, ...]


@dataclass(slots=True)
class _Entry:
    rules: str
    content: str
    root: str
    sure: bool  # nothing the run looked at has changed since, as far as the stamps beside it tell
    answers: list[int]
    findings: list[list[Any]]
    problems: list[str]


@dataclass(slots=True)
class _State:
    stamps: dict[str, Stamp] = field(default_factory=dict)
    entries: dict[str, _Entry] = field(default_factory=dict)


class Cache:
    """The findings of earlier runs with some settings, in a file of a cache folder.

    Args:
        where: the folder, absolute.
        settings: those of the run.
    """

    def __init__(self, where: str, settings: Settings) -> None:
        self._start = time.time_ns()
        key = digest(folder.this_tool() + _rules_key(settings.selection.active, settings))
        self._file = os.path.join(where, f"{key}.json")  # noqa: PTH118
        self._keys: dict[tuple[object, ...], str] = {}
        self._rest = b""
        self._state = self._read()
        self._unchanged = bool(self._state.stamps) and all(
            stamp(path) == before for path, before in self._state.stamps.items()
        )
        self._used: set[str] = set()
        self._new = False
        self._table: list[Any] | None = None
        self._summaries: dict[str, tuple[str, str]] = {}
        self._answers: dict[str, Answers] = {}

    def find(self, path: Path, settings: Settings) -> Result | None:
        """The findings of a file, where all is as it was; None otherwise."""
        if not self._unchanged:
            return None
        full = os.path.abspath(path)  # noqa: PTH100
        entry = self._state.entries.get(full)
        if (
            entry is None
            or not entry.sure
            or full not in self._state.stamps
            or entry.rules != self._rules(path, settings)
        ):
            return None
        return self._result(full, path, entry)

    def knows(self, path: Path, settings: Settings) -> bool:
        """Whether there are findings of a file that may still stand."""
        entry = self._state.entries.get(os.path.abspath(path))  # noqa: PTH100
        return entry is not None and entry.rules == self._rules(path, settings)

    def recall(self, path: Path, content: str, settings: Settings, projects: Projects) -> Result | None:
        """The findings of a file whose text has a digest, where what it asked has the same answers; None otherwise."""
        full = os.path.abspath(path)  # noqa: PTH100
        entry = self._state.entries.get(full)
        if entry is None or entry.content != content or entry.rules != self._rules(path, settings):
            return None
        project = projects.of(Path(full))
        if str(project.root) != entry.root:
            return None
        table = self._answered()
        try:
            same = all(self.answer(projects, entry.root, question) == answer for question, answer in _of(table, entry))
        except (LookupError, TypeError, ValueError):
            return None
        if not same:
            return None
        self._new = True
        entry.sure = True
        return self._result(full, path, entry)

    def answer(self, projects: Projects, root: str, question: Question) -> str:
        """What a project answers now."""
        if root not in self._answers:
            from lightlint.facts.questions import Answers

            self._answers[root] = Answers(projects.at(Path(root)), self.summaries())
        return self._answers[root](question)

    def summaries(self) -> dict[str, tuple[str, str]]:
        """Of project files by path a digest of the text and one of its summary; to be added to."""
        self._answered()
        return self._summaries

    def keep(self, kept: Kept, path: Path, settings: Settings, result: Result) -> None:
        """Keep the result of a file that was linted."""
        table = self._answered()
        first = len(table)
        table.extend([list(question), answer] for question, answer in kept.answers)
        self._state.entries[kept.path] = _Entry(
            self._rules(path, settings),
            kept.content,
            kept.root,
            True,
            list(range(first, len(table))),
            [packed(finding) for finding in result.findings],
            [problem.message for problem in result.problems],
        )
        self._used.add(kept.path)
        self._new = True

    def save(self) -> None:
        """Write what was kept, if anything was. Nothing is written where a file was changed while it may have been read."""
        if not self._new:
            return
        inside = os.path.dirname(self._file)  # noqa: PTH120
        paths = {os.path.abspath(path) for path in LOOKED}  # noqa: PTH100
        stamps = {path: stamp(path) for path in sorted(paths) if not path.startswith(inside)}
        if any(found and len(found) == OF_FILE and max(found[:2]) >= self._start for found in stamps.values()):
            return
        stamps = {path: NEVER if found and is_recent(found, self._start) else found for path, found in stamps.items()}
        if self._unchanged:
            stamps = self._state.stamps | stamps
        entries = self._entries_to_write()
        table, entries = _compact(self._answered(), entries)
        first = {"stamps": stamps, "entries": {path: _as_list(entry) for path, entry in entries.items()}}
        second = {"table": table, "summaries": self._summaries}
        compact = {"separators": (",", ":")}
        folder.write(
            self._file,
            json.dumps(first, **compact).encode(),  # type: ignore[arg-type]
            json.dumps(second, **compact).encode(),  # type: ignore[arg-type]
        )

    def looked_at(self) -> dict[str, Stamp] | None:
        """The stamps of all that this run hangs on; None unless every finding came from here and nothing has changed."""
        if self._new or not self._unchanged:
            return None
        paths = {os.path.abspath(path) for path in LOOKED} - self._state.stamps.keys()  # noqa: PTH100
        return self._state.stamps | {path: stamp(path) for path in paths}

    def _entries_to_write(self) -> dict[str, _Entry]:
        kept: dict[str, _Entry] = {}
        for path, entry in self._state.entries.items():
            if path not in self._used:
                if not os.path.exists(path):  # noqa: PTH110
                    continue
                entry.sure = entry.sure and self._unchanged
            kept[path] = entry
        return kept

    def _result(self, full: str, path: Path, entry: _Entry) -> Result | None:
        try:
            found = tuple(unpacked(str(path), parts) for parts in entry.findings)
        except (ValueError, TypeError, LookupError):
            return None
        self._used.add(full)
        problems = tuple(Problem(str(path), message, fatal=False) for message in entry.problems)
        return Result(found, problems, files=1)

    def _rules(self, path: Path, settings: Settings) -> str:
        active = settings.rules_for(path)
        key = (active, settings.target, settings.distributed)
        if key not in self._keys:
            self._keys[key] = _rules_key(active, settings)
        return self._keys[key]

    def _read(self) -> _State:
        parts = folder.read(self._file)
        if parts is None:
            return _State()
        self._rest = parts[1]
        try:
            first = json.loads(parts[0])
            entries = {path: _Entry(*entry) for path, entry in first["entries"].items()}
            return _State(dict(first["stamps"]), entries)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return _State()

    def _answered(self) -> list[Any]:
        """The questions with their answers, which only a run on which something changed has to know."""
        if self._table is None:
            self._table = []
            try:
                second = json.loads(self._rest or b'{"table": [], "summaries": {}}')
                self._summaries.update((path, (known[0], known[1])) for path, known in second["summaries"].items())
                self._table = list(second["table"])
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                self._state.entries.clear()
        return self._table


def _rules_key(active: frozenset[str], settings: Settings) -> str:
    return digest(repr((sorted(active), settings.target, settings.distributed)))


def _of(table: list[Any], entry: _Entry) -> Iterable[Answered]:
    for number in entry.answers:
        question, answer = table[number]
        yield tuple(question), answer


def _compact(table: list[Any], entries: dict[str, _Entry]) -> tuple[list[Any], dict[str, _Entry]]:
    """The table with each line once and none that no entry refers to."""
    lines: dict[tuple[object, ...], int] = {}
    for entry in entries.values():
        keys = [(*table[number][0], "=", table[number][1]) for number in entry.answers]
        entry.answers = [lines.setdefault(key, len(lines)) for key in keys]
    return [[list(key[:-2]), key[-1]] for key in lines], entries


def _as_list(entry: _Entry) -> list[Any]:
    return [entry.rules, entry.content, entry.root, entry.sure, entry.answers, entry.findings, entry.problems]
