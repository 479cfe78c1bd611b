"""A text to lint, and the way back from its offsets to a file's rows or a notebook's cells."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from lightlint.finding import Edit, Excerpt, Location

_LINE_END = re.compile(r"\r\n|\r|\n")


class UnreadableError(Exception):
    """A file that cannot be linted; the text says why in one line, without the file's name."""


class Origin(Protocol):
    """How a source gets back to its file: knows encoding, BOM, line ends, or a notebook's JSON."""

    def render(self, text: str) -> bytes:
        """The whole file with `text` as its Python."""
        ...


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell inside a notebook's joined text; `number` counts from 1 over all cells of the notebook."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class Source:
    """Python text with its origin. `cells` is empty for a .py file; `masked` ranges may not be edited.

    `pip_lines` are a notebook's `!pip` / `%pip` commands as (offset, command), which masking hides from the text.
    """

    filename: str
    text: str
    origin: Origin
    cells: tuple[Cell, ...] = ()
    masked: tuple[tuple[int, int], ...] = ()
    pip_lines: tuple[tuple[int, str], ...] = field(default=())

    @property
    def is_notebook(self) -> bool:
        return bool(self.cells)

    @cached_property
    def row_starts(self) -> list[int]:
        """Offset of the first character of each row, as Python's grammar counts rows (form feeds end none)."""
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    def cell_at(self, offset: int) -> Cell | None:
        """The notebook cell that holds an offset."""
        if not self.cells:
            return None
        return self.cells[max(0, bisect_right(self.cells, offset, key=lambda cell: cell.start) - 1)]

    def row_of(self, offset: int) -> int:
        """Row of the joined text that holds an offset, from 1."""
        return bisect_right(self.row_starts, offset)

    def locate(self, offset: int) -> Location:
        """Row and column of an offset, counted in its cell for a notebook."""
        row = self.row_of(offset)
        column = offset - self.row_starts[row - 1] + 1
        cell = self.cell_at(offset)
        return Location(row - (self.row_of(cell.start) - 1 if cell else 0), column)

    def edit(self, start: int, end: int, content: str) -> Edit:
        """An edit of this source with its locations filled in."""
        return Edit(start, end, content, self.locate(start), self.locate(end))

    def editable(self, edits: Sequence[Edit]) -> bool:
        """Whether edits keep off masked magics and each stays inside one cell."""
        return all(
            not any((start < edit.end and edit.start < end) or start < edit.start < end for start, end in self.masked)
            and self.cell_at(edit.start) == self.cell_at(max(edit.start, edit.end - 1))
            for edit in edits
        )

    def excerpt(self, start: int, end: int, around: int = 2) -> Excerpt:
        """The rows from `around` above `start` to `around` below `end`, inside the cell."""
        cell = self.cell_at(start)
        low, high = (cell.start, cell.end) if cell else (0, len(self.text))
        first_possible, last_possible = self.row_of(low), self.row_of(max(low, high - 1))
        first = max(first_possible, self.row_of(start) - around)
        last = min(last_possible, self.row_of(max(start, end - 1)) + around)
        lines = [
            self.text[self.row_starts[row - 1] : self._row_end(row)].rstrip("\r\n") for row in range(first, last + 1)
        ]
        return Excerpt(first - (first_possible - 1 if cell else 0), tuple(lines))

    def _row_end(self, row: int) -> int:
        return self.row_starts[row] if row < len(self.row_starts) else len(self.text)
