"""What code that only an old Python reads says of versions: a project with `print x` runs on Python 2."""

from __future__ import annotations

import re
import warnings
from functools import cache
from pathlib import Path

from lightlint.facts.versions.pins.folders import entries_of
from lightlint.facts.versions.pins.pin import Kind, Pin
from lightlint.facts.versions.pins.reading import text_of

_MOST_FILES = 30
_PRINTS = re.compile(r"^[ \t]*print[ \t]+[\w\"'%]", re.MULTILINE)
_REFUSED = "Missing parentheses in call to 'print'"


@cache
def pins_of_old_code(directory: Path) -> tuple[Pin, ...]:
    """The Python that the files of a directory are written for, where one of them is no Python 3.

    Cached; `pins_of_old_code.cache_clear()` forgets it.
    """
    for file in [each for each in entries_of(directory)[0] if each.suffix == ".py"][:_MOST_FILES]:
        text = text_of(file) or ""
        row = _row_of_print(text) if _PRINTS.search(text) else None
        if row is not None:
            return (Pin("python", "<2.8", file, row, kind=Kind.PROSE),)
    return ()


def _row_of_print(text: str) -> int | None:
    """The row of the first `print` statement that Python 3 refuses, None where it reads the text or fails elsewhere first."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, "old", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error.lineno if str(error.msg).startswith(_REFUSED) else None
    except (ValueError, RecursionError, MemoryError):
        return None
    return None
