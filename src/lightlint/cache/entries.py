"""What is kept of each linted file, and the table of questions and answers that the files of a cache share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightlint.facts.project.project import Question

Answered = tuple["Question", str]


@dataclass(slots=True)
class Entry:
    """The findings of a file; `answers` are lines of the table."""

    rules: str
    content: str
    root: str
    sure: bool  # nothing the run looked at has changed since, as far as the stamps beside it tell
    answers: list[int]
    findings: list[list[Any]]
    problems: list[str]
    strangers: list[str]
    newer: bool


def answers_of(table: list[Any], entry: Entry) -> Iterable[Answered]:
    """What a file's findings asked, and what was answered."""
    for number in entry.answers:
        question, answer = table[number]
        yield tuple(question), answer


def compacted(table: list[Any], entries: dict[str, Entry]) -> tuple[list[Any], dict[str, Entry]]:
    """The table with each line once and none that no entry refers to."""
    lines: dict[tuple[object, ...], int] = {}
    for entry in entries.values():
        keys = [(*table[number][0], "=", table[number][1]) for number in entry.answers]
        entry.answers = [lines.setdefault(key, len(lines)) for key in keys]
    return [[list(key[:-2]), key[-1]] for key in lines], entries


def as_list(entry: Entry) -> list[Any]:
    """An entry as JSON keeps it; `Entry(*kept)` makes it again."""
    return [
        entry.rules,
        entry.content,
        entry.root,
        entry.sure,
        entry.answers,
        entry.findings,
        entry.problems,
        entry.strangers,
        entry.newer,
    ]
