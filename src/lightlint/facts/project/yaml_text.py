"""Reads the plain part of YAML that configuration files mostly are: nested tables and lists of one-line values.

No YAML library is needed for that, and none is there to import. What is beyond it is `UNKNOWN`: a value with an anchor,
a tag, an interpolation, braces or several lines is so alone, a line that fits nothing makes the whole text so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lightlint.facts.code.unknown import UNKNOWN

_KEY = re.compile(r"""("[^"\\]*"|'[^']*'|[\w./-]+(?: [\w./-]+)*)\s*:(?:\s+(.*))?$""")
_WORDS = {"": None, "~": None, "null": None} | {
    word: truth for truth, words in ((True, ("true", "yes", "on")), (False, ("false", "no", "off"))) for word in words
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)(e[-+][0-9]+)?", re.IGNORECASE)
_DEEPEST = 50


class _UnreadableError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _Line:
    indent: int
    text: str


def read_yaml(text: str) -> object:
    """The content of a YAML text as dict, list, str, int, float, bool and None, `UNKNOWN` where it cannot be read."""
    try:
        lines = _lines(text)
        if not lines:
            return None
        content, end = _block(lines, 0, 0)
        return content if end == len(lines) else UNKNOWN
    except _UnreadableError:
        return UNKNOWN


def _lines(text: str) -> list[_Line]:
    found: list[_Line] = []
    for raw in text.splitlines():
        bare = raw.lstrip(" ")
        body = _without_comment(bare).rstrip()
        if body.startswith("\t"):
            raise _UnreadableError
        if body in {"---", "..."} and len(bare) == len(raw):
            if found:  # what follows is another document
                raise _UnreadableError
            continue
        if body:
            found.append(_Line(len(raw) - len(bare), body))
    return found


def _without_comment(text: str) -> str:
    """A line up to the `#` that starts a comment: one at the start or behind a space, outside of quotes."""
    quote = ""
    for place, sign in enumerate(text):
        before = text[place - 1] if place else " "
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'" and before in " [,":
            quote = sign
        elif sign == "#" and before in " \t":
            return text[:place]
    return text


def _block(lines: list[_Line], start: int, depth: int) -> tuple[object, int]:
    """The table or list that starts at a line, and the line after it."""
    if depth > _DEEPEST:
        raise _UnreadableError
    if _is_item(lines[start]):
        return _sequence(lines, start, depth)
    return _mapping(lines, start, depth)


def _mapping(lines: list[_Line], start: int, depth: int) -> tuple[dict[str, object], int]:
    made: dict[str, object] = {}
    indent = lines[start].indent
    place = start
    while place < len(lines) and lines[place].indent == indent and not _is_item(lines[place]):
        match = _KEY.match(lines[place].text)
        if match is None:
            raise _UnreadableError
        made[match[1].strip("\"'")], place = _value(lines, place, match[2] or "", depth)
    if place < len(lines) and lines[place].indent > indent:
        raise _UnreadableError
    return made, place


def _value(lines: list[_Line], place: int, written: str, depth: int) -> tuple[object, int]:
    """What stands behind a key: on its line or in the lines below."""
    indent = lines[place].indent
    following = place + 1
    if not written and following < len(lines):
        below = lines[following]
        if below.indent > indent or (below.indent == indent and _is_item(below)):
            return _block(lines, following, depth + 1)
    end = _skip(lines, following, indent)
    return (scalar(written) if end == following else UNKNOWN), end


def _sequence(lines: list[_Line], start: int, depth: int) -> tuple[list[object], int]:
    made: list[object] = []
    indent = lines[start].indent
    place = start
    while place < len(lines) and lines[place].indent == indent and _is_item(lines[place]):
        rest = lines[place].text[1:].lstrip()
        if _KEY.match(rest) or rest.startswith("- ") or rest == "-":
            inner = indent + len(lines[place].text) - len(rest)
            end = _skip(lines, place + 1, indent)
            value, used = _block([_Line(inner, rest), *lines[place + 1 : end]], 0, depth + 1)
            if used != end - place:
                raise _UnreadableError
            place = end
        else:
            value, place = _value(lines, place, rest, depth)
        made.append(value)
    if place < len(lines) and lines[place].indent > indent:
        raise _UnreadableError
    return made, place


def _is_item(line: _Line) -> bool:
    return line.text == "-" or line.text.startswith("- ")


def _skip(lines: list[_Line], place: int, indent: int) -> int:
    """The first line from a place on that is not further in."""
    while place < len(lines) and lines[place].indent > indent:
        place += 1
    return place


def scalar(written: str) -> object:
    """A value on one line, `UNKNOWN` if it is more than a plain or quoted value or a list of these."""
    if len(written) > 1 and written[0] == written[-1] and written[0] in "\"'":
        inner = written[1:-1]
        return UNKNOWN if "\\" in inner or written[0] in inner or "${" in inner else inner
    if "${" in written or written[:1] in set("&*!{}|>%@`\"'],") or ": " in written:
        return UNKNOWN
    if written.startswith("["):
        inner = written[1:-1]
        if not written.endswith("]") or set(inner) & set("[]{}\"'&*!"):
            return UNKNOWN
        return [scalar(each.strip()) for each in inner.split(",")] if inner.strip() else []
    if written.lower() in _WORDS:
        return _WORDS[written.lower()]
    if _INTEGER.fullmatch(written):
        return int(written)
    return float(written) if _FLOAT.fullmatch(written) else written
