"""Which rules find something in a file, told from a sketch of it: most find nothing, and then it need not be parsed.

Checks run on the sketch as they do on a real tree, each to its first finding. What they would report is not said here: a
sketch knows no places, so the rules that find something look at the parsed file again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NoReturn

import libcst as cst

from lightlint.clock import Clock, stage
from lightlint.facts.file import FileFacts
from lightlint.finding import Finding
from lightlint.pages import Page
from lightlint.sketch import UnsketchableError
from lightlint.sketch.statements import sketch
from lightlint.walk import walk


class SketchFacts(FileFacts):
    """The facts of a sketch."""

    def places(self, _module: cst.Module) -> Nowhere:
        """No places."""
        return Nowhere()

    def parsed(self, text: str) -> cst.Module | None:
        """The sketch of another file."""
        return _sketched(text)


class Nowhere:
    """The places of a sketch's nodes, of which there are none."""

    def span(self, _node: cst.CSTNode) -> NoReturn:
        """Say that the text is asked for.

        Raises:
            SuspectError: always.
        """
        raise SuspectError


class SuspectError(Exception):
    """A check has found something, or asks for what only the text tells."""


def suspects(
    text: str,
    tree: ast.Module | None,
    pages: Sequence[Page],
    facts_of: Callable[[cst.Module], FileFacts],
    clock: Clock | None,
) -> Sequence[Page]:
    """The rules that may find something in a file; all of them where a sketch does not tell.

    Args:
        text: the file's text.
        tree: what `ast` makes of it, None where it refuses it.
        pages: the rules to try.
        facts_of: makes the facts of a sketch.
        clock: told what takes how long.
    """
    try:
        with stage(clock, "sketch"):
            if tree is None:
                return pages
            facts = facts_of(sketch(text, tree))
    except (UnsketchableError, RecursionError):
        return pages
    found: set[str] = set()
    broken: list[Page] = []

    def failed(page: Page, error: Exception) -> None:
        found.add(page.name)
        if not isinstance(error, SuspectError):
            broken.append(page)  # what went wrong in a fact may have left it half done

    walk(facts, pages, _suspect, failed, clock)
    facts.release()
    return pages if broken else [page for page in pages if page.name in found]


def _suspect(_finding: Finding) -> NoReturn:
    raise SuspectError


@lru_cache(maxsize=4)
def _sketched(text: str) -> cst.Module | None:
    try:
        return sketch(text)
    except UnsketchableError:
        return None
