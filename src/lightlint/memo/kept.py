"""What a process works out of files of lightlint's own, kept for later ones beside Python's bytecode, under the same terms."""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
import zlib
from collections.abc import Callable, Iterable
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from typing import Any

from lightlint import __version__

_VERSIONS = MAGIC_NUMBER + __version__.encode() + b"\n"  # of Python's bytecode, and of what reads it here
_HEAD = len(_VERSIONS) + 4  # bytes: those, and a checksum of what follows


def derived(name: str, files: Iterable[Path], make: Callable[[], Any]) -> Any:
    """What a function makes of some files: taken from where it is kept, as long as they have the same times and sizes.

    Args:
        name: what it is kept as.
        files: the files that decide what is made: data, and the modules that read it.
        make: returns what `marshal` can write, or what is to be made in each process.
    """
    stamps = [(str(path), status.st_mtime_ns, status.st_size) for path in files for status in [path.stat()]]
    before = read(name)
    if before is not None and before[0] == stamps:
        return before[1]
    value = make()
    write(name, (stamps, value))
    return value


def read(name: str) -> Any | None:
    """What is kept as a name; None where nothing is, or something damaged or another version's."""
    try:
        written = _file(name).read_bytes()
    except OSError:
        return None
    head, data = written[:_HEAD], written[_HEAD:]
    return marshal.loads(data) if head == _head(data) else None


def write(name: str, value: Any) -> None:
    """Keep a value whole, or not at all; Python that is to write no bytecode keeps none."""
    if sys.dont_write_bytecode:
        return
    data = marshal.dumps(value)
    file = _file(name)
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(_head(data) + data)
        unfinished.replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()


def _file(name: str) -> Path:
    beside = Path(cache_from_source(__file__))
    return beside.with_name(f"{beside.stem}.{name}.bin")


def _head(data: bytes) -> bytes:
    return _VERSIONS + zlib.crc32(data).to_bytes(4, "big")
