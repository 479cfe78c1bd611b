"""JSON read with its positions: where a value stands in the raw text, so that it alone can be replaced."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class StringSpan:
    """A string and the range of its literal, quotes included."""

    start: int
    end: int
    text: str


def skip(raw: str, position: int) -> int:
    """Behind the white space at a position."""
    match = _SPACE.match(raw, position)
    return match.end() if match else position


def value(raw: str, position: int) -> tuple[Any, int]:
    """The value that begins at a position, and where it ends.

    Raises:
        ValueError: no JSON there; a json.JSONDecodeError where its place is known.
    """
    return _DECODER.raw_decode(raw, position)


def read_object(raw: str, position: int, read: Callable[[str, int], int]) -> int:
    """Call `read` with the key and the start of every value of the object at a position; it returns the value's end.

    Returns the end of the object.

    Raises:
        ValueError: no JSON there.
    """

    def member(start: int) -> int:
        if not raw.startswith('"', start):
            raise json.JSONDecodeError("Expecting property name in double quotes", raw, start)
        key, end = scanstring(raw, start + 1, True)
        colon = skip(raw, end)
        if not raw.startswith(":", colon):
            raise json.JSONDecodeError("Expecting ':' delimiter", raw, colon)
        return read(key, skip(raw, colon + 1))

    return _read_members(raw, position, "}", member)


def read_array(raw: str, position: int, read: Callable[[int], int]) -> int:
    """Call `read` with the start of every element of the array at a position; it returns the element's end.

    Returns the end of the array.

    Raises:
        ValueError: no JSON there.
    """
    return _read_members(raw, position, "]", read)


def _read_members(raw: str, position: int, closing: str, read: Callable[[int], int]) -> int:
    position = skip(raw, position + 1)
    if raw.startswith(closing, position):
        return position + 1
    while True:
        position = skip(raw, read(position))
        if raw.startswith(closing, position):
            return position + 1
        if not raw.startswith(",", position):
            raise json.JSONDecodeError("Expecting ',' delimiter", raw, position)
        position = skip(raw, position + 1)


def strings(raw: str) -> list[StringSpan]:
    """The strings of an array of strings that makes up all of `raw`."""
    spans: list[StringSpan] = []

    def element(start: int) -> int:
        text, end = scanstring(raw, start + 1, True)
        spans.append(StringSpan(start, end, text))
        return int(end)

    read_array(raw, 0, element)
    return spans
