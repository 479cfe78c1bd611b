"""What code that only old releases heed says of versions: a project with `print x` runs on Python 2, one with
`x.cuda(async=True)` on one before 3.7, one that asks for `volatile` inputs with a torch before 0.4. And the one release of
a library that code asserts."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from lightlint.facts.versions.pins.folders import entries_of
from lightlint.facts.versions.pins.pin import Kind, Pin, canonical, is_pinned
from lightlint.facts.versions.pins.reading import text_of

_MOST_FILES = 30
_PRINTS = re.compile(r"^[ \t]*print[ \t]+[\w\"'%]", re.MULTILINE)
_REFUSED = "Missing parentheses in call to 'print'"
_ASYNC = re.compile(r"[(,]\s*async\s*=(?!=)")
_VOLATILE = re.compile(r"\bvolatile[ \t]*=[ \t]*True\b")
_ASSERTS = re.compile(r"^[ \t]*assert[ \t]+(\w+)\.__version__[ \t]*==[ \t]*([\"'])(\d+(?:\.\d+)+)\2", re.MULTILINE)
_NEWER = re.compile(r"\bno_grad\b|\bset_grad_enabled\b|\binference_mode\b|\btorch\.device\(|\.requires_grad_\(")


@cache
def pins_of_old_code(directory: Path) -> tuple[Pin, ...]:
    """The Python and the torch that the files of a directory are written for, where one of them is no Python of today, or no
    torch from 0.4 on heeds what it asks for, and none knows what came with that; and the releases that they assert.

    Cached; `pins_of_old_code.cache_clear()` forgets it.
    """
    pins: dict[str, Pin] = {}
    texts = [(each, text_of(each) or "") for each in _code_in(directory)]
    for file, text in texts:
        is_old = _PRINTS.search(text) or _ASYNC.search(text)
        refused = _refused(text) if "python" not in pins and is_old else None
        if refused is not None:
            pins["python"] = Pin("python", refused[1], file, refused[0], kind=Kind.PROSE)
        asked = _VOLATILE.search(text) if "torch" not in pins else None
        if asked is not None and not any(_NEWER.search(each) for _, each in texts):
            row = text.count("\n", 0, asked.start()) + 1
            pins["torch"] = Pin("torch", "<0.4", file, row, kind=Kind.PROSE, of_code=True)
    return (*pins.values(), *(pin for file, text in texts for pin in _asserted(file, text)))


def _asserted(file: Path, text: str) -> Iterator[Pin]:
    """The releases of libraries without which a file goes no further: `assert timm.__version__ == "0.3.2"`."""
    for found in _ASSERTS.finditer(text):
        name = canonical(found[1])
        if is_pinned(name):
            yield Pin(name, f"=={found[3]}", file, text.count("\n", 0, found.start()) + 1, kind=Kind.PROSE)


def _code_in(directory: Path) -> list[Path]:
    return [each for each in entries_of(directory)[0] if each.suffix == ".py"][:_MOST_FILES]


def _refused(text: str) -> tuple[int, str] | None:
    """The row that is the first that today's Python refuses, and the Pythons that read it: a `print` statement, an argument
    `async`. None where it reads the text or fails elsewhere first."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, "old", "exec", dont_inherit=True)
    except SyntaxError as error:
        row = error.lineno or 1
        if str(error.msg).startswith(_REFUSED):
            return row, "<2.8"
        return (row, "<3.7") if _ASYNC.search("\n".join(text.splitlines()[row - 1 : row])) else None
    except (ValueError, RecursionError, MemoryError):
        return None
    return None
