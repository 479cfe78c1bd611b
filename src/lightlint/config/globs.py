"""Globs as ruff reads them: `*` crosses slashes, `{a,b}` is a choice, a glob without a slash matches a name anywhere."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

_TOKEN = re.compile(r"/\*\*/|\*\*/|\*+|\[!?\]?[^\]]*\]|.", re.DOTALL)
_MEANING = {"/**/": "/(?:.*/)?", "**/": "(?:.*/)?", "**": ".*", "*": ".*", "?": "."}


def absolute(glob: str, directory: str) -> str:
    """A glob with a slash made absolute; one without stays, and so does a leading `!`."""
    mark, bare = ("!", glob[1:]) if glob.startswith("!") else ("", glob)
    bare = bare.replace(os.sep, "/").removeprefix("./").rstrip("/")
    relative = "/" in bare and not Path(bare).is_absolute()
    return mark + (f"{_literal(_slashed(directory).rstrip('/'))}/{bare}" if relative else bare)


def matches(glob: str, path: str) -> bool:
    """Whether a glob that `absolute` gave, without its `!`, matches an absolute path."""
    full = _slashed(path)
    return compiled(glob).fullmatch(full if "/" in glob else full.rpartition("/")[2]) is not None


@cache
def compiled(glob: str) -> re.Pattern[str]:
    """The glob as a regular expression.

    Raises:
        ValueError: its brackets or braces do not pair; the text says so.
    """
    text, depth = "", 0
    for token in _TOKEN.findall(glob.removeprefix("!")):
        if token == "{":
            text, depth = text + "(?:", depth + 1
        elif token == "}" and depth:
            text, depth = text + ")", depth - 1
        elif token == "," and depth:
            text += "|"
        elif token.startswith("[") and len(token) > 1:
            text += _set(token[1:-1])
        else:
            text += _MEANING.get(token) or re.escape(token)
    try:
        return re.compile(text, re.DOTALL)
    except re.error as error:
        raise ValueError(f"glob `{glob}` is malformed: {error.msg}") from error


def _set(members: str) -> str:
    negated = members.startswith("!")
    inner = re.sub(r"([][^&|~\\])", r"\\\1", members[negated:])
    return f"[^{inner}]" if negated else f"[{inner}]"


def _literal(path: str) -> str:
    """A glob that matches just this path."""
    return re.sub(r"([][*?{}])", r"[\1]", path)


def _slashed(path: str) -> str:
    return path.replace(os.sep, "/")
