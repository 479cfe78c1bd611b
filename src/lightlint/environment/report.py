"""Rows as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from lightlint.environment.rows import FAILS, SLOWS, Row
from lightlint.reports.paint import Span, draw, printable


def as_json(rows: Sequence[Row]) -> str:
    """A list of rows, the weightiest first."""
    return json.dumps([asdict(row) for row in rows], indent=2) + "\n"


def as_text(rows: Sequence[Row], colour: bool, *, most: int) -> str:
    """The rows for people; of those without known effect at most `most`."""
    return draw(_spans(rows, most), colour)


def _spans(rows: Sequence[Row], most: int) -> Iterator[Span]:
    weighty = [row for row in rows if row.why]
    light = [row for row in rows if not row.why]
    for row in weighty:
        yield (
            printable(row.subject),
            "bold red" if row.weight >= FAILS else "bold yellow" if row.weight >= SLOWS else "bold",
        )
        yield f"{_values(row)}\n", ""
        at = f" at {', '.join(row.places)}" if row.places else ""
        yield f"  {printable(row.why)}{at}\n", ""
    if weighty and light:
        yield "\n", ""
    for row in light[:most]:
        yield f"{printable(row.subject)}{_values(row)}\n", ""
    if len(light) > most:
        yield f"and {len(light) - most} more that the code does not use (--all lists them)\n", "dim"


def _values(row: Row) -> str:
    if row.second is None:
        return f": {printable(row.first)}" if row.first else ""
    return f": {printable(row.first) or '-'} | {printable(row.second) or '-'}"
