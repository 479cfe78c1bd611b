"""A finding's rows with row numbers, and its span marked below them."""

from __future__ import annotations

from collections.abc import Iterator

from lightlint.finding import Excerpt, Finding, Location
from lightlint.reports.paint import TIER_STYLES, Span, printable

GUTTER = "blue"

_TAB = 4
_HEAD, _TAIL = 5, 3  # rows shown of a long span


def frame(finding: Finding, excerpt: Excerpt) -> Iterator[Span]:
    """The rows of the excerpt as spans, each row ended by a line feed."""
    start = _clamped(finding.location, excerpt)
    end = _end_inside(start, max(start, _clamped(finding.end_location, excerpt)), excerpt)
    margin = len(str(excerpt.row + len(excerpt.lines) - 1))
    style = TIER_STYLES[finding.tier]
    draw_row = _one_row if start.row == end.row else _bar_row
    yield f"{' ' * margin} |\n", GUTTER
    for row, line in enumerate(excerpt.lines, excerpt.row):
        if start.row + _HEAD <= row <= end.row - _TAIL:
            if row == start.row + _HEAD:
                yield f"{'...':{margin}} | |\n", GUTTER
            continue
        for number, text, mark in draw_row(row, line, start, end):
            yield f"{number:>{margin}} |", GUTTER
            yield from (piece for piece in ((mark, style) if mark.strip() else (mark, ""), (text, "")) if piece[0])
            yield "\n", ""
    yield f"{' ' * margin} |\n", GUTTER


Row = tuple[str, str, str]  # row number, text, mark; the mark stands before the text


def _one_row(row: int, line: str, start: Location, end: Location) -> Iterator[Row]:
    """A row of a frame whose span lies in one row: `^^^` goes on a row of its own below it."""
    shown = expand(line)
    yield str(row), f" {shown}" if shown else "", ""
    if row == start.row:
        left, right = columns(line, start.column), columns(line, end.column)
        yield "", "", f" {' ' * left}{'^' * max(1, right - left)}"


def _bar_row(row: int, line: str, start: Location, end: Location) -> Iterator[Row]:
    """A row of a frame whose span covers several: a bar beside them, drawn from its first to its last character."""
    shown = expand(line)
    text = f" {shown}" if shown else ""
    if row == start.row:
        left = columns(line, start.column)
        if shown[:left].strip():
            yield str(row), f"  {text}" if text else "", ""
            yield "", "", f"  {'_' * (left + 1)}^"
        else:
            yield str(row), text, " /"
    else:
        yield (
            str(row),
            text if start.row < row <= end.row else f"  {text}" if text else "",
            (" |" if start.row < row <= end.row else ""),
        )
    if row == end.row:
        yield "", "", f" |{'_' * columns(line, max(1, end.column - 1))}_^"


def _clamped(place: Location, excerpt: Excerpt) -> Location:
    """A place above or below the rows that are shown goes to their first or last character."""
    last = excerpt.row + len(excerpt.lines) - 1
    if place.row > last:
        return Location(last, len(excerpt.lines[-1]) + 1)
    return place if place.row >= excerpt.row else Location(excerpt.row, 1)


def _end_inside(start: Location, end: Location, excerpt: Excerpt) -> Location:
    """An end that lies before the first character of a row belongs to the row above."""
    if end.column > 1 or end.row == start.row:
        return end
    return Location(end.row - 1, len(excerpt.lines[end.row - 1 - excerpt.row]) + 1)


def columns(line: str, column: int) -> int:
    """How many terminal columns the characters before character `column` (from 1) take, tabs and wide ones counted so."""
    return _width(expand(line[: column - 1]))


def expand(line: str) -> str:
    """The line as it is shown: tabs as spaces up to the next stop, control characters as pictures."""
    if "\t" not in line:
        return printable(line)
    shown = ""
    for index, part in enumerate(line.split("\t")):
        if index:
            shown += " " * (_TAB - _width(shown) % _TAB)
        shown += printable(part)
    return shown


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(char) in ("Mn", "Me", "Cf") else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )
