"""A text to lint, and the way back from its offsets to a file's rows or a notebook's cells."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

from lightlint.finding import Edit, Excerpt, Location
from lightlint.sources.lexical import LogicalLine, logical_lines

_CELL_MARK = re.compile(r"^# ?(?:%%|In ?\[)", re.MULTILINE)
_LINE_END = re.compile(r"\r\n|\r|\n")


class UnreadableError(Exception):
    """A file that cannot be linted; the text says why in one line, without the file's name."""


class ForeignError(UnreadableError):
    """A file that is in order and not lightlint's to lint: a notebook of another language, a Git LFS pointer."""


class UnwritableError(Exception):
    """A file that cannot be written; the text says why in one line, without the file's name."""


class Origin(Protocol):
    """How a source gets back to its file: knows encoding and BOM, or a notebook's JSON and its magics."""

    def render(self, source: Source) -> bytes:
        """The whole file with the text of `source` as its Python.

        Raises:
            UnwritableError: the file's encoding cannot hold the text.
        """
        ...


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell inside a notebook's joined text, from `start` to `end`; the line end behind it only joins cells.

    `number` counts from 1 over all cells of the notebook, those without code included.
    """

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class Source:
    """Python text with its origin.

    Args:
        cells: a notebook's code cells in order; empty for a .py file.
        masked: ranges that may not be edited: magics, and cells that hold no Python.
        pip_lines: a notebook's install commands as (offset, command), without `!`, `%` and `python -m`.
        broken: (offset, message) of each cell with a syntax error; its text is blanked so that the others parse.
        hidden: what the file has in the place of each masked range, of the same length.
        python: the Python that a notebook was run with, `3.7`.
        installed: what its outputs, and install commands in comments, say was installed then, `torch==1.7.1`.
        of_colab: Colab saved it, which takes comments in front of a cell magic.
    """

    filename: str
    text: str
    origin: Origin
    cells: tuple[Cell, ...] = ()
    masked: tuple[tuple[int, int], ...] = ()
    pip_lines: tuple[tuple[int, str], ...] = ()
    broken: tuple[tuple[int, str], ...] = ()
    hidden: tuple[str, ...] = ()
    python: str = ""
    installed: tuple[str, ...] = ()
    of_colab: bool = False

    @property
    def is_notebook(self) -> bool:
        return bool(self.cells)

    @property
    def says_of_versions(self) -> tuple[str, ...]:
        """The install commands, and as comments the Python of a notebook and what was installed when it ran."""
        ran = (f"# python {self.python}",) if self.python else ()
        noted = (f"# installed {each}" for each in self.installed)
        return (*(command for _, command in self.pip_lines), *ran, *noted)

    @cached_property
    def is_in_cells(self) -> bool:
        """Whether a script is written in cells, which an editor runs one by one: `# %%`, or a notebook's `# In[3]:`."""
        return bool(_CELL_MARK.search(self.text))

    @cached_property
    def shown(self) -> str:
        """The text with the masked ranges as the file has them; every offset is that of `text`."""
        parts: list[str] = []
        position = 0
        for (start, end), hidden in zip(self.masked, self.hidden, strict=False):
            parts += [self.text[position:start], hidden]
            position = end
        return "".join([*parts, self.text[position:]])

    @cached_property
    def row_starts(self) -> list[int]:
        """Offset of the first character of each row, as Python's grammar counts rows (form feeds end none)."""
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    def cell_at(self, offset: int) -> Cell | None:
        """The notebook cell that holds an offset."""
        if not self.cells:
            return None
        return self.cells[max(0, bisect_right(self.cells, offset, key=lambda cell: cell.start) - 1)]

    def ends_cell(self, offset: int) -> bool:
        """Whether nothing but comments stands behind an offset in a notebook's cell, which shows the expression that ends there."""
        cell = self.cell_at(offset)
        behind = self.text[offset : cell.end].splitlines() if cell is not None else ()
        return cell is not None and all(not line.strip() or line.lstrip().startswith("#") for line in behind)

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
        """Whether each edit stays inside one cell and leaves masked ranges, and the characters beside them, alone."""
        return all(self._editable(edit) for edit in edits)

    def _editable(self, edit: Edit) -> bool:
        low, high = self._piece(edit.start)
        near = [
            (start, end)
            for start, end in self.masked
            if start <= edit.end and edit.start <= end and low <= start < high
        ]
        if edit.content.strip() and self._has_cell_magic(edit.start, high):
            return False
        return edit.end <= high and all(self._spares(edit, start, end) for start, end in near)

    def _has_cell_magic(self, start: int, end: int) -> bool:
        """Whether a cell magic stands in a range: above it IPython takes comments and blank lines only."""
        spans = zip(self.masked, self.hidden, strict=False)
        return any(start <= at < end and hidden.startswith("%%") for (at, _), hidden in spans)

    def _spares(self, edit: Edit, start: int, end: int) -> bool:
        """Whether an edit that touches a masked range leaves it its place: not inside, and its neighbours the same."""
        low, high = self._piece(start)
        cell = self.cell_at(start)
        if (edit.end > start and edit.start < end) or (cell and (cell.start, cell.end) == (start, end)):
            return False
        before = self.text[low:start][-1:]
        behind = self.text[end:high][:1]
        if edit.end == start:
            left = (self.text[low : edit.start] + edit.content)[-1:]
            becomes_first = not left and before in {"\r", "\n"}
            return left == before or becomes_first
        return edit.start != end or (edit.content + self.text[edit.end : high])[:1] == behind

    def _piece(self, offset: int) -> tuple[int, int]:
        """The range an edit at `offset` may not leave: its cell with the line end behind it, or the whole text."""
        index = bisect_right(self.cells, offset, key=lambda cell: cell.start) - 1
        following = self.cells[index + 1 : index + 2]
        return (self.cells[index].start if self.cells else 0), (following[0].start if following else len(self.text))

    def rewritten(self, edits: Iterable[Edit]) -> Source:
        """This source with edits of its text applied, cells and masked ranges moved along.

        Raises:
            ValueError: edits overlap, leave their cell or touch a masked range (see `editable`).
        """
        ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
        if not self.editable(ordered):
            raise ValueError("an edit leaves its cell or touches a masked range")
        if any(later.start < edit.end for edit, later in pairwise(ordered)):
            raise ValueError("edits overlap")
        if not self.cells:
            return replace(self, text=_replaced(self.text, 0, ordered))
        parts: list[str] = []
        cells: list[Cell] = []
        moves: list[int] = []
        at = 0
        for cell in self.cells:
            low, high = self._piece(cell.start)
            inside = [edit for edit in ordered if low <= edit.start and self._piece(edit.start)[0] == low]
            part = _replaced(self.text[low:high], low, inside).removesuffix("\n")
            cells.append(Cell(cell.number, at, at + len(part)))
            moves.append(at - low)
            parts.append(part + "\n")
            at += len(part) + 1

        def moved(offset: int) -> int:
            index = bisect_right(self.cells, offset, key=lambda cell: cell.start) - 1
            low = self.cells[index].start
            before = (edit for edit in ordered if low <= edit.start and edit.end <= offset)
            return offset + moves[index] + sum(len(edit.content) - (edit.end - edit.start) for edit in before)

        return replace(
            self,
            text="".join(parts),
            cells=tuple(cells),
            masked=tuple((moved(start), moved(start) + end - start) for start, end in self.masked),
            pip_lines=tuple((moved(offset), command) for offset, command in self.pip_lines),
            broken=tuple((moved(offset), message) for offset, message in self.broken),
        )

    def render(self) -> bytes:
        """The whole file with this text as its Python; byte for byte the file read where the text is unchanged.

        Raises:
            UnwritableError: the file's encoding cannot hold the text.
        """
        return self.origin.render(self)

    @cached_property
    def logical_lines(self) -> tuple[LogicalLine, ...]:
        """The logical lines of the text, blank and comment lines included."""
        return tuple(logical_lines(self.text))

    def logical_line_at(self, offset: int) -> LogicalLine:
        """The logical line that holds an offset."""
        lines = self.logical_lines
        return lines[max(0, bisect_right(lines, offset, key=lambda line: line.start) - 1)]

    def excerpt(self, start: int, end: int, around: int = 2) -> Excerpt:
        """The rows from `around` above `start` to `around` below `end`, inside the cell."""
        cell = self.cell_at(start)
        low, high = (cell.start, cell.end) if cell else (0, len(self.text))
        first_possible, last_possible = self.row_of(low), self.row_of(max(low, high - 1))
        first = max(first_possible, self.row_of(start) - around)
        last = min(last_possible, self.row_of(max(start, end - 1)) + around)
        lines = [
            self.shown[self.row_starts[row - 1] : self._row_end(row)].rstrip("\r\n") for row in range(first, last + 1)
        ]
        return Excerpt(first - (first_possible - 1 if cell else 0), tuple(lines))

    def _row_end(self, row: int) -> int:
        return self.row_starts[row] if row < len(self.row_starts) else len(self.text)


def _replaced(text: str, base: int, edits: Sequence[Edit]) -> str:
    """`text`, which stands at offset `base` of the source, with ordered edits applied."""
    parts: list[str] = []
    position = base
    for edit in edits:
        parts += [text[position - base : edit.start - base], edit.content]
        position = edit.end
    return "".join([*parts, text[position - base :]])
