"""The code that `dataclasses` writes and compiles anew in every process, kept as Python keeps a module's bytecode.

libcst's 250 node types take most of its import so: 0.15 s, and 0.06 s with their code kept (Python 3.11, libcst 1.9).
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import marshal
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from types import CodeType
from typing import Any

_HEAD = len(MAGIC_NUMBER) + 4  # bytes: Python's bytecode version, and a checksum of what follows
_tables: dict[str, _Table] = {}


@contextmanager
def kept_code(name: str) -> Iterator[None]:
    """Let `dataclasses` take the code of the classes that are made meanwhile from the table of a name, where it is there.

    The module calls the built-in `exec` with each method's text; a global of its own name stands before it. Where a later
    Python no longer does so, nothing is kept and nothing is lost.
    """
    table = _tables.setdefault(name, _Table(name))
    before = vars(dataclasses).get("exec")
    vars(dataclasses)["exec"] = table.execute
    try:
        yield
    finally:
        if before is None:
            del vars(dataclasses)["exec"]
        else:
            vars(dataclasses)["exec"] = before


def save() -> None:
    """Write what is new beside Python's own bytecode of this package, if that may be written."""
    if not sys.dont_write_bytecode:
        for table in _tables.values():
            table.save()


class _Table:
    """Code objects by their text; read when the first one is asked for."""

    def __init__(self, name: str) -> None:
        beside = Path(cache_from_source(__file__))
        self._file = beside.with_name(f"{beside.stem}.{name}.bin")
        self._codes: dict[str, CodeType] | None = None
        self._new = False

    def execute(self, text: str, *namespaces: dict[str, Any]) -> None:
        """What `exec` does."""
        if self._codes is None:
            self._codes = _read(self._file)
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = compile(text, "<string>", "exec")
            self._new = True
        builtins.exec(code, *namespaces)

    def save(self) -> None:
        """Write the table whole, or not at all."""
        if not self._new or self._codes is None:
            return
        data = marshal.dumps(self._codes)
        unfinished = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            unfinished.write_bytes(MAGIC_NUMBER + zlib.crc32(data).to_bytes(4, "big") + data)
            unfinished.replace(self._file)
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink()
        self._new = False


def _read(file: Path) -> dict[str, CodeType]:
    """The table of a file, empty where that is missing, damaged or another Python's."""
    try:
        written = file.read_bytes()
    except OSError:
        return {}
    head, data = written[:_HEAD], written[_HEAD:]
    if head != MAGIC_NUMBER + zlib.crc32(data).to_bytes(4, "big"):
        return {}
    found: dict[str, CodeType] = marshal.loads(data)
    return found
