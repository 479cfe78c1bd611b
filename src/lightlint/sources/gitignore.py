"""The patterns of a .gitignore file, matched as git matches them: on bytes, the last pattern that fits decides."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, [*range(32), 127])),
    "digit": string.digits,
    "graph": string.digits + string.ascii_letters + string.punctuation,
    "lower": string.ascii_lowercase,
    "print": string.digits + string.ascii_letters + string.punctuation + " ",
    "punct": string.punctuation,
    "space": string.whitespace,
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}


class _UnmatchableError(ValueError):
    """A pattern git accepts and never matches: an unclosed class, an unknown class name, a lone backslash."""


@dataclass(frozen=True, slots=True)
class GitIgnore:
    """Patterns of one file: a single expression whose groups are the patterns, last one first."""

    expression: re.Pattern[bytes]
    negated: tuple[bool, ...]

    def verdict(self, path: bytes, is_directory: bool) -> bool | None:
        """Whether `path`, relative to the file's directory with `/` between names, is ignored; None if no pattern fits."""
        match = self.expression.fullmatch(path + b"/" if is_directory else path)
        return None if match is None or match.lastindex is None else not self.negated[match.lastindex - 1]


def parse_gitignore(data: bytes) -> GitIgnore:
    """Read the patterns of a .gitignore file; lines git would never match are left out."""
    expressions: list[bytes] = []
    negated: list[bool] = []
    for line in reversed(data.removeprefix(b"\xef\xbb\xbf").split(b"\n")):
        pattern = _strip(line.removesuffix(b"\r"))
        negates = pattern.startswith(b"!")
        pattern = pattern[1:] if negates else pattern
        if not pattern or line.startswith(b"#"):
            continue
        try:
            expressions.append(b"(" + _translate(pattern) + b")")
        except _UnmatchableError:
            continue
        negated.append(negates)
    return GitIgnore(re.compile(b"|".join(expressions) or b"(?!)", re.DOTALL), tuple(negated))


def _strip(line: bytes) -> bytes:
    """The line without spaces at its end, save one that a backslash keeps."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return bare + b" " if backslashes % 2 and len(bare) < len(line) else bare


def _translate(pattern: bytes) -> bytes:
    """One pattern as an expression over paths in which a directory ends with `/`."""
    only_directories = pattern.endswith(b"/")
    pattern = pattern[:-1] if only_directories else pattern
    anchored = b"/" in pattern
    expression = b"" if anchored else b"(?:.*/)?"
    position = 1 if pattern.startswith(b"/") else 0
    start = position
    while position < len(pattern):
        piece, position = _piece(pattern, position, start)
        expression += piece
    return expression + (b"/" if only_directories else b"/?")


def _piece(pattern: bytes, position: int, start: int) -> tuple[bytes, int]:
    """The expression of the pattern's next element, and where the element behind it begins."""
    char = pattern[position : position + 1]
    if char == b"*":
        end = position
        while pattern[end : end + 1] == b"*":
            end += 1
        opens = position == start or pattern[position - 1 : position] == b"/"
        if end - position > 1 and opens and end == len(pattern):
            return b".+", end
        if end - position > 1 and opens and pattern[end : end + 1] == b"/":
            return b"(?:.*/)?", end + 1
        return b"[^/]+" if opens and end == len(pattern) else b"[^/]*", end  # a name is never empty
    if char == b"?":
        return b"[^/]", position + 1
    if char == b"[":
        return _class(pattern, position + 1)
    if char == b"\\":
        char = pattern[position + 1 : position + 2]
        if not char:
            raise _UnmatchableError
        return re.escape(char), position + 2
    return re.escape(char), position + 1


def _class(pattern: bytes, position: int) -> tuple[bytes, int]:
    """A bracket expression; its first element may be `]`, and it never matches `/`."""
    negates = pattern[position : position + 1] in (b"!", b"^")
    position += negates
    members: set[int] = set()
    previous = 0
    first = True
    while first or pattern[position : position + 1] != b"]":
        first = False
        char, following = _take(pattern, position)
        named = re.compile(rb"\[:([^\]]*):\]").match(pattern, position)
        if (
            pattern[position : position + 1] == b"-"
            and previous
            and following < len(pattern)
            and pattern[following : following + 1] != b"]"
        ):
            last, following = _take(pattern, following)
            members.update(range(previous, last + 1))
            previous = 0
        elif named:
            members.update(_named(named[1]))
            following, previous = named.end(), 0
        else:
            members.add(char)
            previous = char
        position = following
    if negates:
        members = set(range(256)) - members
    members.discard(ord("/"))
    return (
        b"[" + b"".join(b"\\x%02x" % member for member in sorted(members)) + b"]" if members else b"(?!)"
    ), position + 1


def _take(pattern: bytes, position: int) -> tuple[int, int]:
    """The character at a position of a bracket expression, unescaped, and the position behind it."""
    if pattern[position : position + 1] == b"\\":
        position += 1
    if position >= len(pattern):
        raise _UnmatchableError
    return pattern[position], position + 1


def _named(name: bytes) -> bytes:
    try:
        return _CLASSES[name.decode("ascii")].encode("ascii")
    except (KeyError, UnicodeDecodeError):
        raise _UnmatchableError from None
