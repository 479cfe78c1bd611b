"""What rules find in a sketch of a file, so that the file itself need not be parsed.

Checks run on the sketch as they do on a real tree. One that asks for what the sketch does not hold, such as a comment, the
space around a node or a place that `ast` does not tell, looks at the parsed file again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

import libcst as cst

from lightlint.clock import Clock, stage
from lightlint.facts.file import FileFacts
from lightlint.finding import Finding
from lightlint.linting.elsewhere import walk_with_others
from lightlint.memo.latest import Latest
from lightlint.pages import Page
from lightlint.sources.source import Source
from lightlint.text import Text
from lightlint.trees.sketch import UnsketchableError
from lightlint.trees.sketch.places import SketchPlaces, UnplacedError
from lightlint.trees.sketch.statements import Sketch, sketch


class SketchFacts(FileFacts):
    """The facts of a sketch; arguments as those of `FileFacts`, but for the sketch."""

    def __init__(self, source: Source, made: Sketch, *args: Any, **keywords: Any) -> None:
        self._marks = made.marks
        super().__init__(source, made.module, *args, **keywords)

    def places(self, _module: cst.Module) -> SketchPlaces:
        """Where its nodes stand in the text."""
        return SketchPlaces(self.source, self.tree.parent, self._marks)

    def parsed(self, text: str) -> Sketch | None:
        """The sketch of another file."""
        return _sketched(text)


def screened(
    text: Text,
    pages: Sequence[Page],
    active: Set[str],
    facts_of: Callable[[Callable[..., FileFacts], Any], FileFacts],
    add: Callable[[Finding], None],
    clock: Clock | None,
) -> Set[str]:
    """The names of the rules that must look at the parsed file; all that are on where it has no sketch.

    Args:
        text: the file's.
        pages: the rules to try.
        active: the names of all rules that are on.
        facts_of: makes the facts of a sketch.
        add: called with each finding of the other rules.
        clock: told what takes how long.
    """
    try:
        with stage(clock, "sketch"):
            if text.tree is None:
                return active
            facts = facts_of(SketchFacts, sketch(text.plain, text.tree))
    except (UnsketchableError, RecursionError):
        return active
    found: list[Finding] = []
    unsure: set[str] = set()
    broken: list[Page] = []

    def failed(page: Page, error: Exception) -> None:
        unsure.add(page.name)
        if not isinstance(error, UnplacedError):
            broken.append(page)  # what went wrong in a fact may have left it half done

    walk_with_others(facts, text, pages, active, found.append, failed, clock)
    facts.release()
    if broken:
        return active
    for finding in found:
        if finding.name not in unsure:
            add(finding)
    return unsure


def _try_sketch(text: str) -> Sketch | None:
    try:
        return sketch(text)
    except UnsketchableError:
        return None


_sketched = Latest(_try_sketch, 200_000)
