"""Edits before they become a fix: plain ranges that can be joined, and the step that makes a `Fix` of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from lightlint.finding import Applicability, Fix
from lightlint.sources.source import Source


class RawEdit(NamedTuple):
    """Replace characters `start` to `end` of a text by `content`."""

    start: int
    end: int
    content: str


@dataclass(frozen=True, slots=True)
class Draft:
    """Edits that belong together, and whether they would lose a comment. Join two with `+`."""

    edits: tuple[RawEdit, ...] = ()
    drops_comment: bool = False

    def __add__(self, other: Draft) -> Draft:
        return Draft(self.edits + other.edits, self.drops_comment or other.drops_comment)


def join(*drafts: Draft | None) -> Draft | None:
    """One draft of several, or None if one of them could not be made."""
    joined = Draft()
    for draft in drafts:
        if draft is None:
            return None
        joined += draft
    return joined


def as_fix(source: Source, message: str, draft: Draft | None, applicability: Applicability) -> Fix | None:
    """Make a fix of a draft; `message` says what the fix does.

    Returns:
        None if there is nothing to do, if edits overlap, or if one may not be made in this source (masked magics,
        cell borders). The fix is unsafe where a comment would be lost, whatever `applicability` says.
    """
    edits = _disjoint(draft.edits) if draft else None
    if not draft or not edits:
        return None
    located = tuple(source.edit(*edit) for edit in edits)
    if not source.editable(located):
        return None
    return Fix(message, Applicability.UNSAFE if draft.drops_comment else applicability, located)


def _disjoint(edits: Iterable[RawEdit]) -> list[RawEdit] | None:
    """The edits in order, those that insert at one place joined; None where two would change the same text."""
    merged: list[RawEdit] = []
    for edit in sorted(edits, key=lambda edit: edit[:2]):
        last = merged[-1] if merged else None
        if last and last.start == last.end == edit.start:
            merged[-1] = RawEdit(edit.start, edit.end, last.content + edit.content)
        elif last and edit.start < last.end:
            return None
        else:
            merged.append(edit)
    return merged
