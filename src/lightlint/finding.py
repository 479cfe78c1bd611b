"""Findings, fixes and edits as plain data: what checks produce and every report, door and fix reads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Tier(StrEnum):
    """How bad a finding is; notes never change the exit status."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Applicability(StrEnum):
    """Whether a fix keeps what the program means (safe) or asks its author to look (unsafe)."""

    SAFE = "safe"
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a file, or in a notebook's cell: row and column count from 1, columns in characters."""

    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace characters `start` to `end` of a source's text by `content`; the locations name the same range to people."""

    start: int
    end: int
    content: str
    location: Location
    end_location: Location


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together: all are applied, or none. `message` says what the fix does."""

    message: str
    applicability: Applicability
    edits: tuple[Edit, ...]

    def is_wanted(self, *, unsafe: bool) -> bool:
        """Whether there is something to apply, and it is safe or the unsafe ones are asked for, too."""
        return bool(self.edits) and (unsafe or self.applicability is Applicability.SAFE)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The lines a report shows around a finding; `row` is that of the first."""

    row: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One report of one rule.

    `start` and `end` are character offsets into the text of the source (a notebook's joined code cells);
    `location` and `end_location` say the same in rows and columns of the file or of notebook cell `cell`
    (from 1 over all cells, None for a .py file). `noqa_row` is the row where a suppression comment goes. `cause` is the
    finding where its cause lies, in another file, which is named by its absolute path: this one stands at the call.
    """

    code: str
    name: str
    tier: Tier
    message: str
    filename: str
    start: int
    end: int
    location: Location
    end_location: Location
    cell: int | None = None
    fix: Fix | None = None
    noqa_row: int | None = None
    excerpt: Excerpt | None = None
    cause: Finding | None = None

    @property
    def counts(self) -> bool:
        """Whether the finding makes the exit status 1."""
        return self.tier is not Tier.NOTE

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        return (self.filename, self.start, self.end, self.code, self.message)
