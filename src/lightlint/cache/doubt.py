"""What a few changed Python files make of all that is kept: most stands without being asked again."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightlint.cache.stamps import NEVER, OF_FILE, OF_FOLDER, Stamp, is_settled, stamp
from lightlint.memo.digest import digest

if TYPE_CHECKING:
    from lightlint.facts.project.project import Question

_SOURCES = (".py", ".ipynb")
_OF_ONE_FILE = {"summary", "text", "registers"}
_OF_VERSIONS = {"setup.py", "noxfile.py"}
_OF_EVERY_FILE = {"mentioning", "importing"}


@dataclass(frozen=True, slots=True)
class Changes:
    """The Python files that have changed, and the folders that have another stamp and hold the same names."""

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()


def changes(stamps: Mapping[str, Stamp], names: Callable[[], Mapping[str, str]]) -> Changes | None:
    """What has changed since stamps were taken; None where that is more than Python files, or nothing is known.

    Args:
        stamps: of all that was looked at.
        names: what `names_in` said of its folders: editors and git write a file by making another one beside it.
    """
    files: set[str] = set()
    folders: set[str] = set()
    for path, before in stamps.items():
        now = stamp(path)
        if now == before:
            continue
        if _is_source(path, before, now):
            files.add(path)
        elif now is not None and len(now) == OF_FOLDER and names().get(path) == names_in(path):
            folders.add(path)
        else:
            return None
    return Changes(frozenset(files), frozenset(folders)) if stamps else None


def _is_source(path: str, before: Stamp, now: Stamp) -> bool:
    """Whether a path is a file of Python that was there before; some say which versions a project is for."""
    was_file = before is not None and (before == NEVER or len(before) == OF_FILE)
    named = path.endswith(_SOURCES) and os.path.basename(path) not in _OF_VERSIONS  # noqa: PTH119
    return named and was_file and now is not None and len(now) == OF_FILE


def names_in(folder: str) -> str:
    """A digest of the names in a folder, empty for one that cannot be listed."""
    try:
        return digest("\0".join(sorted(os.listdir(folder))))  # noqa: PTH208
    except OSError:
        return ""


def listings_of(stamps: Mapping[str, Stamp], start: int) -> dict[str, str]:
    """What `names_in` says of those folders among stamped paths that surely hold what they held at a time."""
    folders = (path for path, found in stamps.items() if found and len(found) == OF_FOLDER and is_settled(found, start))
    return {path: names_in(path) for path in folders}


def glimpses_of(files: Iterable[str]) -> dict[str, str]:
    """What an index of a project knows of some files."""
    from lightlint.facts.project.glimpse import bytes_at, glimpse_of

    return {path: glimpse_of(bytes_at(Path(path))) for path in files}


def doubtful(
    answers: Iterable[tuple[Question, str]],
    changed: Set[str],
    known: Mapping[str, str],
    ask: Callable[[Question], Set[str]],
) -> frozenset[int]:
    """The numbers of the kept answers that are others now.

    Args:
        answers: every question with the answer it had.
        changed: the files that have changed, and no other path has.
        known: what an index of the project knew of those files that it knows anything of, as `glimpse` says it.
        ask: what the projects that may be asked answer now.
    """
    from lightlint.facts.project.glimpse import bytes_at, glimpse_of
    from lightlint.facts.versions.pins.kinds import reader_of

    of_versions = any(reader_of(Path(path)) is not None for path in changed)
    texts = {path: bytes_at(Path(path)) for path in changed}
    indexed = all(glimpse_of(text) == known.get(path, "") for path, text in texts.items())
    found: set[int] = set()
    for number, (question, answer) in enumerate(answers):
        kind, *asked = question
        in_doubt = (
            (kind in _OF_ONE_FILE and asked[0] in changed)
            or (kind in _OF_EVERY_FILE and not indexed)
            or (kind == "target" and of_versions)
            or (kind == "occurs" and _may_differ(asked, answer, texts.values()))
        )
        if in_doubt and ask(question) != {answer}:
            found.add(number)
    return frozenset(found)


def _may_differ(asked: list[Any], answer: str, texts: Iterable[bytes]) -> bool:
    """Whether a pattern may be found in the project now and was not before, or the other way round."""
    from lightlint.facts.project.mentions import occurs_in

    name, pattern = asked[:2]  # the file left aside may be among these texts: then it is asked again for nothing
    occurs = any(occurs_in(text, name.encode(), re.compile(pattern.encode())) for text in texts)
    return occurs != (answer == str(True))
