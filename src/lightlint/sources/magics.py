"""IPython's syntax in a code cell, masked at equal length: the cell parses as Python and every offset stays.

A masked statement becomes a call of `_`, of which nothing is known, padded with blanks; text that is no Python of
this program (`%%bash`, `%%writefile`) becomes blank, and so does a cell that does not parse, save that the names it
gives values hold such a call from there on. So does a cell with a blank for students to fill. Valid Python is never masked: `%`, `!` at the start of a logical
line or behind `=`, and `?` outside strings and comments, occur in none. A comment that suppresses findings stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lightlint.sources.lexical import logical_line
from lightlint.syntax import rows_of

# Cell magics that run their body as Python in the notebook's own namespace.
_PYTHON_BODIED = {"capture", "debug", "ipytest", "memit", "prun", "time", "timeit", "wandb"}

_CELL_MAGIC = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r(?!\n)|\n))*(?P<magic>%%(?P<name>\w*))")
_ROW_END = re.compile(r"\r\n|\r|\n|\Z")
_CONTINUED_END = re.compile(r"(?<!\\)(?=\r)|(?<![\\\r])(?=\n)|\Z")
_ESCAPE = re.compile(r"[ \t]*(?=[%!?])")
_ASSIGNED = re.compile(r"(?:[^=\r\n#'\"!<>+*/%&|^@\\\[-]|\[[^\]\r\n]*\])+=[ \t]*(?=[%!](?!=))")
_HELP = re.compile(r"[ \t]*(?=[^'\"#\r\n\s])[^'\"#\r\n]*?\?{1,2}[ \t;]*(?=[\r\n]|\Z)")
_BARE_MAGIC = re.compile(
    r"\s*(?P<magic>(?:pip3?|conda|mamba|uv|cd|ls|ll|mkdir|rmdir|mv|cp|rm|cat|pwd|env|load_ext|matplotlib|run|time|timeit)"
    r"[ \t][^\r\n]*)\s*"
)
_FOREIGN = re.compile(r"\s*(?:%(?:sql|md|sh|r|scala|fs)\b|>>> |In ?\[\d*\]: )")
_INSTALL = re.compile(
    r"(?:sudo\s+)?(?:\S*python[\w.]*\s+-m\s+|\{[^}]*\}\s+-m\s+)?((?:uv\s+)?pip3?|conda|mamba|micromamba)(\s.*)"
)
_NEXT_COMMAND = re.compile(r"&&|\|\||;\s|\s\|\s")
_SUPPRESSION = re.compile(r"(?<=[ \t])#\s*(?:noqa\b|lightlint\s*:)[^\r\n]*\Z", re.IGNORECASE)
_SHELL_COMMENT = re.compile(r"(?:^|\s)#.*")
_NAME = r"(?!(?:True|False|None|_)\b)[^\W\d]\w*"
_DEFINITION = re.compile(rf"[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(?P<names>{_NAME})")
_BOUND = re.compile(rf"[ \t]*(?P<names>{_NAME}(?:[ \t]*,[ \t]*{_NAME})*)[ \t]*=(?!=)")
_BLANK = re.compile(
    r"(?P<code>[^#\r\n]*)#(?![^\r\n]*\bend\b)[^\r\n]*\b(?:your\s+(?:own\s+)?(?:code|answer|solution|implementation|\w+\s+here)|code\s+(?:goes\s+)?here"
    r"|fill\s+(?:this\s+|me\s+)?in\b|complete\s+(?:the|this)\s+(?:code|line))|(?P<bracket>[^#\r\n]*<\s*your\s+code)",
    re.IGNORECASE,
)
_LEFT_OUT = re.compile(
    r"(?m)(?:^[ \t]*|[=(,.\[][ \t]*)<[ \t]*(?:\.\.\.|[A-Za-z_][^<>=\r\n]*)>|\?\?\?|=[ \t]*(?:\.{4}[ \t]*)?(?:#.*)?$"
)  # `<all tokens>`, `???`, `weights = `
_CONTINUATION = re.compile(r"\\(?:\r\n|\r|\n)")


@dataclass(frozen=True, slots=True)
class Masked:
    """A cell's text with its magics masked, the ranges masked, and the install commands in them by offset."""

    text: str
    ranges: tuple[tuple[int, int], ...]
    commands: tuple[tuple[int, str], ...]


def mask(text: str) -> Masked:
    """Mask the magics of one cell, all of it if its cell magic takes no Python."""
    return _masked(text, list(_magics(text)))


def mask_all(text: str) -> Masked:
    """Blank a whole cell; it still tells what it installs."""
    return Masked(_blank(text), ((0, len(text)),), tuple(_shell_commands(text, 0)))


def mask_broken(text: str) -> Masked:
    """Blank a cell that does not parse, but let the names that it binds hold something unknown from there on."""
    rows: list[str] = []
    inside: int | None = None  # the indent of a function or class whose names are its own
    for row in rows_of(text):  # a separator of Unicode ends none of Python's rows
        indent = len(row) - len(row.lstrip())
        if row.strip() and inside is not None and indent <= inside:
            inside = None
        bound = (_DEFINITION.match(row) or _BOUND.match(row)) if inside is None else None
        if bound and bound.re is _DEFINITION:
            inside = indent
        rows.append(_bound(bound["names"].strip(), row) if bound else _blank(row))
    return Masked("".join(rows), ((0, len(text)),), tuple(_shell_commands(text, 0)))


def _bound(names: str, row: str) -> str:
    statement = f"{names}=_()"
    return statement + _blank(row[len(statement) :]) if len(statement) <= len(row.rstrip("\r\n")) else _blank(row)


def has_blank(text: str) -> bool:
    """Whether a cell leaves code for students to write: what it computes is not to be seen.

    Where more than a `return` follows the comment that asks for code in the next row, as deep, the blank is taken for
    filled.
    """
    rows = text.splitlines()
    for at, row in enumerate(rows):
        blank = _BLANK.match(row)
        code = blank["code"] if blank else None
        if blank and (code is None or code.rstrip().endswith(("=", "(", ",", ":", "[", "return"))):
            return True
        if code is not None and not code.strip():
            behind = next((each for each in rows[at + 1 :] if not each.lstrip().startswith("#")), "")
            inner = behind.strip()
            if not inner or inner.startswith("return") or len(behind) - len(behind.lstrip()) < len(code):
                return True
    return False


def has_gap(text: str) -> bool:
    """Whether a cell that does not parse has something left out for students, however it is told."""
    return bool(_LEFT_OUT.search(text)) or any(map(_BLANK.match, text.splitlines()))


def mask_unparsed(text: str) -> Masked | None:
    """The masks of a cell that does not parse, if a notebook runs it still: a magic without `%`, a prompt, another language."""
    bare = _BARE_MAGIC.fullmatch(text)
    if bare:
        return _masked(text, [_Magic(*bare.span("magic"), is_statement=True)])
    return mask_all(text) if _FOREIGN.match(text) else None


@dataclass(frozen=True, slots=True)
class _Magic:
    """A range to mask: by a statement, or by blanks."""

    start: int
    end: int
    is_statement: bool


def _masked(text: str, magics: list[_Magic]) -> Masked:
    parts: list[str] = []
    commands: list[tuple[int, str]] = []
    position = 0
    for magic in magics:
        hidden = text[magic.start : magic.end]
        parts += [text[position : magic.start], _statement(hidden) if magic.is_statement else _blank(hidden)]
        position = magic.end
        commands += _shell_commands(hidden, magic.start)
    return Masked("".join([*parts, text[position:]]), tuple((it.start, it.end) for it in magics), tuple(commands))


def _magics(text: str) -> Iterator[_Magic]:
    """The magics of a cell in order."""
    position = 0
    while header := _CELL_MAGIC.match(text, position):
        if header["name"] not in _PYTHON_BODIED:
            yield _Magic(header.start("magic") if position else 0, len(text), is_statement=False)
            return
        end = _row_end(text, header.start("magic"))
        yield _Magic(header.start("magic"), end, is_statement=False)
        position = _behind_row(text, end)
    while position < len(text):
        escape = _ESCAPE.match(text, position) or _ASSIGNED.match(text, position)
        if escape:
            end = _continued_end(text, escape.end())
            suppression = _SUPPRESSION.search(text, escape.end(), end)
            yield _Magic(escape.end(), suppression.start() if suppression else end, is_statement=True)
        elif _HELP.match(text, position):
            end = _row_end(text, position)
            yield _Magic(position + len(text[position:end]) - len(text[position:end].lstrip()), end, is_statement=True)
        else:
            end = logical_line(text, position).end
        position = _behind_row(text, end)


def _row_end(text: str, position: int) -> int:
    match = _ROW_END.search(text, position)
    return match.start() if match else len(text)


def _continued_end(text: str, position: int) -> int:
    """Where a command ends whose rows a backslash at their end joins."""
    match = _CONTINUED_END.search(text, position)
    return match.start() if match else len(text)


def _behind_row(text: str, end: int) -> int:
    match = _ROW_END.match(text, end)
    return max(match.end(), end) if match and match.end() > end else len(text)


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


def _statement(text: str) -> str:
    """A statement as long as `text`, in its first row; the rows a backslash joined to it are blank."""
    first, rest = text[: _row_end(text, 0)], text[_row_end(text, 0) :]
    return ("_()" if len(first) > 2 else "_").ljust(len(first)) + _blank(rest)


def _shell_commands(text: str, offset: int) -> Iterator[tuple[int, str]]:
    """Install commands in the text of a magic, each with the offset of the row it stands in."""
    joined = _CONTINUATION.sub(lambda match: " " * len(match[0]), text)
    position = 0
    for row in joined.splitlines(keepends=True):
        for command in _NEXT_COMMAND.split(_SHELL_COMMENT.sub("", row.strip().lstrip("!%"))):
            install = _INSTALL.fullmatch(command.strip())
            if install:
                yield offset + position, " ".join(f"{install[1]}{install[2]}".split())
        position += len(row)
