"""What earlier runs found, and whether it still stands.

Findings of a file hang on its text, on the rules that ran, and on what was asked of its project. Where none of the paths
that the run looked at has changed since, or only Python files of which what was asked of them stayed the same, they stand
without a further look (`find`). Otherwise they stand if the text is the same and every question has its old answer
(`recall`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightlint.cache import folder
from lightlint.cache.codec import packed, unpacked
from lightlint.cache.doubt import Changes, changes, doubtful, glimpses_of, listings_of
from lightlint.cache.entries import Answered, Entry, answers_of, as_list, compacted
from lightlint.cache.stamps import NEVER, Stamp, is_recent, stamp, taken
from lightlint.config.settings import Settings
from lightlint.memo.digest import digest
from lightlint.memo.looked import LOOKED
from lightlint.results import Problem, Result

if TYPE_CHECKING:
    from lightlint.facts.project.project import Projects, Question
    from lightlint.facts.project.questions import Answers


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a linted file: its absolute path, a digest of its text, and what it asked of which project."""

    path: str
    content: str
    root: str
    answers: tuple[Answered, ...]


@dataclass(slots=True)
class _State:
    stamps: dict[str, Stamp] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)


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
        self._used: set[str] = set()
        self._table: list[Any] | None = None
        self._summaries: dict[str, tuple[str, str]] = {}
        self._glimpses: dict[str, str] = {}
        self._new_glimpses: dict[str, str] = {}
        self._listings: dict[str, str] = {}
        self._changes = changes(self._state.stamps, self._names)
        self._new = self._changes is not None and bool(self._changes.folders)
        self._answers: dict[str, Answers] = {}

    def find(self, path: Path, settings: Settings) -> Result | None:
        """The findings of a file, where nothing they hang on has changed; None otherwise."""
        full = os.path.abspath(path)  # noqa: PTH100
        entry = self._state.entries.get(full)
        if entry is None or full not in self._state.stamps or entry.rules != self._rules(path, settings):
            return None
        return self._result(full, path, entry) if self._stands(full, entry) else None

    def _stands(self, full: str, entry: Entry) -> bool:
        """Whether nothing that the findings of a file hang on has changed, as far as stamps tell."""
        if self._changes is None or not entry.sure or full in self._changes.files:
            return False
        return not self._changes.files or self._doubtful.isdisjoint(entry.answers)

    @cached_property
    def projects(self) -> Projects:
        """The projects whose answers are compared with the kept ones."""
        from lightlint.facts.project.project import Projects

        return Projects()

    @cached_property
    def _doubtful(self) -> frozenset[int]:
        """The lines of the table whose answers are others now that a few files have changed."""
        roots = {entry.root for entry in self._state.entries.values()}

        def ask(question: Question) -> Set[str]:
            return {self.answer(self.projects, root, question) for root in roots}

        files = (self._changes or Changes()).files
        answers = [(tuple(question), answer) for question, answer in self._answered()]
        try:
            return doubtful(answers, files, self._glimpses, ask)
        except (LookupError, TypeError, ValueError):
            return frozenset(range(len(answers)))

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
            same = all(
                self.answer(projects, entry.root, question) == answer for question, answer in answers_of(table, entry)
            )
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
            from lightlint.facts.project.questions import Answers

            self._answers[root] = Answers(projects.at(Path(root)), self.summaries())
        return self._answers[root](question)

    def summaries(self) -> dict[str, tuple[str, str]]:
        """Of project files by path a digest of the text and one of its summary; to be added to."""
        self._answered()
        return self._summaries

    def _names(self) -> dict[str, str]:
        """Digests of what the folders that an earlier run looked at held."""
        self._answered()
        return self._listings

    def seen(self, glimpses: dict[str, str]) -> None:
        """Take in what an index that was asked in this run knows of files."""
        self._new_glimpses.update(glimpses)

    def keep(self, kept: Kept, path: Path, settings: Settings, result: Result) -> None:
        """Keep the result of a file that was linted."""
        table = self._answered()
        first = len(table)
        table.extend([list(question), answer] for question, answer in kept.answers)
        self._state.entries[kept.path] = Entry(
            self._rules(path, settings),
            kept.content,
            kept.root,
            True,
            list(range(first, len(table))),
            [packed(finding) for finding in result.findings],
            [problem.message for problem in result.problems],
            [name for _, name in result.strangers],
            bool(result.newer),
        )
        self._used.add(kept.path)
        self._new = True

    def save(self) -> None:
        """Write what was kept, if anything was. Nothing is written where a file was changed while it may have been read."""
        if not self._new:
            return
        entries = self._entries_to_write()
        seen = self._seen(whole=entries.keys() <= self._used)
        if seen is None:
            return
        stamps, listings, glimpses = seen
        table, entries = compacted(self._answered(), entries)
        first = {"stamps": stamps, "entries": {path: as_list(entry) for path, entry in entries.items()}}
        second = {"table": table, "summaries": self._summaries, "glimpses": glimpses, "listings": listings}
        compact = {"separators": (",", ":")}
        folder.write(
            self._file,
            json.dumps(first, **compact).encode(),  # type: ignore[arg-type]
            json.dumps(second, **compact).encode(),  # type: ignore[arg-type]
        )

    def _seen(self, *, whole: bool) -> tuple[dict[str, Stamp], dict[str, str], dict[str, str]] | None:
        """Stamps, listings and glimpses to write; None where a file has changed since this run began.

        What a run of some files did not ask anew hangs on what changed files were before: they stay changed for the next.
        """
        changed = self._changes or Changes()
        waiting = frozenset[str]() if whole else changed.files
        LOOKED.update(changed.files - waiting | changed.folders)
        inside = os.path.dirname(self._file)  # noqa: PTH120
        stamps = taken((path for path in LOOKED if not os.path.abspath(path).startswith(inside)), self._start)  # noqa: PTH100
        if stamps is None:
            return None
        listings, glimpses = listings_of(stamps, self._start), self._new_glimpses
        stamps = {path: NEVER if found and is_recent(found, self._start) else found for path, found in stamps.items()}
        if self._changes is not None:
            listings = {path: found for path, found in self._names().items() if path not in stamps} | listings
            stamps = self._state.stamps | stamps | {path: self._state.stamps[path] for path in waiting}
            glimpses = glimpses_of(changed.files - waiting) | glimpses
            glimpses = self._glimpses | {path: glimpses[path] for path in glimpses.keys() - waiting}
        return stamps, listings, {path: found for path, found in glimpses.items() if found}

    def looked_at(self) -> dict[str, Stamp] | None:
        """The stamps of all that this run hangs on; None unless every finding came from here and nothing has changed."""
        if self._new or self._changes is None or self._changes.files:
            return None
        paths = {os.path.abspath(path) for path in LOOKED} - self._state.stamps.keys()  # noqa: PTH100
        return self._state.stamps | {path: stamp(path) for path in paths}

    def _entries_to_write(self) -> dict[str, Entry]:
        kept: dict[str, Entry] = {}
        for path, entry in self._state.entries.items():
            if path not in self._used:
                if not os.path.exists(path):  # noqa: PTH110
                    continue
                entry.sure = entry.sure and self._changes is not None
            kept[path] = entry
        return kept

    def _result(self, full: str, path: Path, entry: Entry) -> Result | None:
        try:
            found = tuple(unpacked(str(path), parts) for parts in entry.findings)
        except (ValueError, TypeError, LookupError):
            return None
        self._used.add(full)
        problems = tuple(Problem(str(path), message, fatal=False) for message in entry.problems)
        strangers = tuple((str(path), name) for name in entry.strangers)
        return Result(found, problems, files=1, strangers=strangers, newer=(str(path),) if entry.newer else ())

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
            entries = {path: Entry(*entry) for path, entry in first["entries"].items()}
            return _State(dict(first["stamps"]), entries)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return _State()

    def _answered(self) -> list[Any]:
        """The questions with their answers, which only a run on which something changed has to know."""
        if self._table is None:
            self._table = []
            try:
                second = json.loads(self._rest or b'{"table": [], "summaries": {}, "glimpses": {}, "listings": {}}')
                self._summaries.update((path, (known[0], known[1])) for path, known in second["summaries"].items())
                self._glimpses.update(second["glimpses"])
                self._listings.update(second["listings"])
                self._table = list(second["table"])
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                self._state.entries.clear()
        return self._table


def _rules_key(active: frozenset[str], settings: Settings) -> str:
    return digest(repr((sorted(active), settings.target, settings.distributed)))
