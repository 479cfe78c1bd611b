"""Python files: bytes to text and back, with byte order mark, line ends and encoding kept."""

from __future__ import annotations

import re
import tokenize
from codecs import BOM_UTF8
from dataclasses import dataclass

from lightlint.sources.source import ForeignError, Source, UnreadableError, UnwritableError

_ROW_END = re.compile(rb"\r\n?|\n")
_OF_WINDOWS = re.compile(r"unknown encoding: (mbcs|ansi|dbcs|oem)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PythonOrigin:
    """A Python file: the encoding its cookie (PEP 263) names, and whether a byte order mark stands before the text."""

    encoding: str
    has_bom: bool

    def render(self, source: Source) -> bytes:
        try:
            data = source.text.encode(self.encoding)
        except UnicodeEncodeError as error:
            wrong = source.text[error.start]
            raise UnwritableError(f"{wrong!a} cannot be written in the file's encoding, {self.encoding}") from error
        return BOM_UTF8 + data if self.has_bom else data


def read_python(filename: str, data: bytes) -> Source:
    """The source of a Python file.

    Raises:
        UnreadableError: the bytes are no Python text, or their encoding is unknown or does not fit them.
    """
    if b"\0" in data:
        raise UnreadableError("not Python text: holds NUL bytes (a binary file, or UTF-16)")
    encoding = _encoding(data)
    origin = PythonOrigin("utf-8" if encoding == "utf-8-sig" else encoding, encoding == "utf-8-sig")
    body = data.removeprefix(BOM_UTF8) if origin.has_bom else data
    try:
        text = body.decode(origin.encoding)
    except UnicodeDecodeError as error:
        raise _misfit(body, error, encoding) from error
    except (LookupError, ValueError) as error:
        raise UnreadableError(f"encoding {encoding!r} is no text encoding") from error
    source = Source(filename, text, origin)
    if origin.encoding not in {"utf-8", "iso-8859-1", "ascii"} and source.render() != data:
        raise UnreadableError(f"encoding {encoding!r} cannot be written back byte for byte")
    return source


def _encoding(data: bytes) -> str:
    rows = iter([row + b"\n" for row in _ROW_END.split(data, maxsplit=2)[:2]])
    try:
        return tokenize.detect_encoding(lambda: next(rows, b""))[0]
    except SyntaxError as error:
        reason = str(error.msg)
    if reason.startswith("invalid or missing encoding"):
        try:
            data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _misfit(data, error, "utf-8") from error
    if (named := _OF_WINDOWS.search(reason)) is not None:
        raise ForeignError(f"skipped: encoding {named[1]!r} of its coding cookie exists on Windows only")
    raise UnreadableError(f"{reason} in its coding cookie")


def _misfit(data: bytes, error: UnicodeDecodeError, encoding: str) -> UnreadableError:
    row = len(_ROW_END.findall(data[: error.start])) + 1
    return UnreadableError(
        f"row {row} is not valid {encoding}; save the file as UTF-8 or name its encoding in a cookie"
    )
