from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check
from lightlint.sources.source import Cell

_LEAD = re.compile(
    r"(?:[ \t]*(?:%%[^\r\n]*)?(?:\r\n|\r(?!\n)|\n))*"
)  # blank rows, and magics that stand in front of others
_COMMENTS = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r(?!\n)|\n))+(?=%%\w)")
_FORM = re.compile(r"[ \t]*#\s*@")  # of Colab, which takes its own rows out first
_MAGIC = re.compile(r"%%(\w+)[^\r\n]*")


class CellMagicNotFirst(Check):
    def visit_Module(self, _: cst.Module) -> None:
        for cell in self.facts.source.cells:
            at = self._late_magic(cell)
            found = _MAGIC.match(self.facts.source.shown, at) if at is not None else None
            if at is not None and found is not None:
                self.report_span(
                    at,
                    found.end(),
                    f"`%%{found[1]}` is a magic of a whole cell, known on its first line only: the cell does not run",
                )

    def _late_magic(self, cell: Cell) -> int | None:
        """Where the first cell magic stands that a comment or code stands in front of."""
        shown = self.facts.source.shown
        lead = _LEAD.match(shown, cell.start, cell.end)
        body = lead.end() if lead else cell.start
        masks = [(start, end) for start, end in self.facts.source.masked if cell.start <= start < cell.end]
        if "%%" in shown[cell.start : body] and any(start < body < end for start, end in masks):
            return None  # the cell of a magic whose text is no Python
        if _FORM.match(shown, body):
            return None
        comments = _COMMENTS.match(shown, body, cell.end)
        if comments:
            return None if self.facts.source.of_colab else comments.end()
        late = (start for start, _ in masks if start > body and _MAGIC.match(shown, start))
        return next((start for start in late if shown[start - 1] in "\r\n"), None)
