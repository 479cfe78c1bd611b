"""The files of a cache: a folder beside the settings, one file a set of settings, written whole or not at all."""

# ruff: noqa: PTH118

from __future__ import annotations

import contextlib
import os
import sys
import time
from functools import cache
from importlib.machinery import PathFinder

from lightlint import __version__
from lightlint.memo.digest import digest

TYPE_CHECKING = False  # that of `typing`, whose import a warm run has no time for
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lightlint.config.settings import Settings

NAME = ".lightlint_cache"
RUN = "run-"  # what the name of a file begins with that holds what a run said
_MOST_FILES = 16  # of either kind
_MOST_BYTES = 64 << 20
_SHORT_LIVED = 3600  # seconds after which an unfinished file is nobody's
_TAG = """Signature: 8a477f597d28d172789f06886806bc55
# This file is a cache directory tag created by lightlint.
# For information about cache directory tags, see https://bford.info/cachedir/
"""


@cache
def this_tool() -> str:
    """A digest of all that decides what lightlint makes of a text: its own code and pages, libcst, and Python."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    packed = os.path.join(here, "rules")
    beside = os.path.join(os.path.dirname(os.path.dirname(here)), "rules")  # noqa: PTH120
    folders = (here, packed if os.path.isdir(packed) else beside, *_libcst())  # noqa: PTH112
    stamps = sorted(stamp for folder in folders for stamp in _stamps(folder))
    return digest(repr((__version__, sys.version, stamps)))


def _libcst() -> Iterator[str]:
    found = PathFinder.find_spec("libcst")
    if found is not None and found.origin is not None:
        yield os.path.dirname(found.origin)  # noqa: PTH120


def _stamps(folder: str) -> Iterator[tuple[str, int, int]]:
    """Name, time and size of the files of a package that a run may read."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name not in {"__pycache__", "tests", "codemod", "confirm", "forecast", "matchers"}:
                    yield from _stamps(entry.path)
            elif entry.name.endswith((".py", ".md", ".toml", ".so", ".pyd")):
                status = entry.stat()
                yield entry.path, status.st_mtime_ns, status.st_size


def folder_of(named: Path | None, settings: Settings) -> str:
    """The cache's folder: the one named, that of the environment, else one beside the settings or in the working directory."""
    chosen = named or os.environ.get("LIGHTLINT_CACHE_DIR")
    beside = settings.file.parent if settings.file else os.getcwd()  # noqa: PTH109
    return os.path.abspath(chosen or os.path.join(beside, NAME))  # noqa: PTH100


def read(path: str) -> tuple[bytes, bytes] | None:
    """The two parts that `write` put in a file; None where there is none, or another one than was written."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    mark, _, content = data.partition(b"\n")
    if mark.decode("ascii", "replace") != digest(content):
        return None
    first, _, second = content.partition(b"\n")
    return first, second


def write(path: str, first: bytes, second: bytes) -> None:
    """Put two parts, the first without line ends, in a file; one that cannot be written is not."""
    folder = os.path.dirname(path)  # noqa: PTH120
    content = first + b"\n" + second
    temporary = f"{path}.{os.getpid()}-{time.monotonic_ns()}"
    try:
        prepare(folder)
        with open(temporary, "xb") as file:
            file.write(digest(content).encode() + b"\n" + content)
        os.replace(temporary, path)  # noqa: PTH105
        _prune(folder, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108


def prepare(folder: str) -> None:
    """Make a cache folder that git and backups leave alone.

    Raises:
        OSError: it cannot be made.
    """
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", _TAG)):
        with contextlib.suppress(FileExistsError), open(os.path.join(folder, name), "x") as file:
            file.write(text)


def _prune(folder: str, kept: str) -> None:
    """Drop the oldest files of a cache that has grown too big, and what was never finished.

    What whole runs said, a file a command line, pushes out none of what holds findings.
    """
    total, counts = 0, {True: 0, False: 0}
    for status, path in sorted(_own(folder), key=lambda each: -each[0].st_mtime_ns):
        unfinished = not path.endswith(".json")
        of_run = os.path.basename(path).startswith(RUN)  # noqa: PTH119
        counts[of_run] += not unfinished
        total += status.st_size
        late = time.time() - status.st_mtime > _SHORT_LIVED
        if path != kept and ((unfinished and late) or counts[of_run] > _MOST_FILES or total > _MOST_BYTES):
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108


def _own(folder: str) -> list[tuple[os.stat_result, str]]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if ".json" in entry.name:
                with contextlib.suppress(OSError):
                    found.append((entry.stat(), entry.path))
    return found


def clean(folder: str) -> bool:
    """Remove a cache folder; False where there is none.

    Raises:
        OSError: it cannot be removed, or was not made by lightlint.
    """
    if not os.path.isdir(folder):  # noqa: PTH112
        return False
    if not os.path.isfile(os.path.join(folder, "CACHEDIR.TAG")):  # noqa: PTH113
        raise OSError(None, "is no cache that lightlint made")
    import shutil

    shutil.rmtree(folder)
    return True
