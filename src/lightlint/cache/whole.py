"""What a whole run said, said again where nothing that it looked at has changed: no rule and no setting is read for it.

It is kept after a run whose every finding came from the cache, and found by the command line, the working directory, the
tool, and what of the environment decides how findings are printed.
"""

from __future__ import annotations

import os
import sys
import time

from lightlint.cache import folder
from lightlint.cache.stamps import Stamp, is_recent, stamp

TYPE_CHECKING = False  # that of `typing`, whose import a warm run has no time for
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ENVIRONMENT = ("COLUMNS", "FORCE_COLOR", "LIGHTLINT_CACHE_DIR", "NO_COLOR", "PYTHONIOENCODING", "TERM")


def recall(arguments: Sequence[str]) -> tuple[str, int] | None:
    """The output and the exit status of the run with these arguments, where they still stand."""
    where = _folder(arguments)
    if not os.path.isdir(where):  # noqa: PTH112
        return None
    import json

    from lightlint.memo.digest import digest

    key = _key(arguments)
    parts = folder.read(os.path.join(where, f"{folder.RUN}{digest(key)}.json"))  # noqa: PTH118
    if parts is None:
        return None
    try:
        kept = json.loads(parts[0])
        if kept["key"] != key or any(stamp(path) != before for path, before in kept["stamps"].items()):
            return None
        return str(kept["text"]), int(kept["status"])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def keep(arguments: Sequence[str], stamps: Mapping[str, Stamp], text: str, status: int) -> None:
    """Keep what a run wrote to standard output, and its exit status.

    Args:
        arguments: those of the run.
        stamps: of all that it looked at.
        text: what it wrote.
        status: its exit status.
    """
    import json

    from lightlint.memo.digest import digest

    now = time.time_ns()
    where = _folder(arguments)
    recent = any(found is not None and is_recent(found, now) for found in stamps.values())
    if recent or not os.path.isdir(where):  # noqa: PTH112
        return
    key = _key(arguments)
    content = json.dumps({"key": key, "stamps": stamps, "text": text, "status": status}, separators=(",", ":"))
    folder.write(os.path.join(where, f"{folder.RUN}{digest(key)}.json"), content.encode(), b"")  # noqa: PTH118


def _folder(arguments: Sequence[str]) -> str:
    """The cache's folder as far as the command line and the environment tell it, without settings."""
    named = os.environ.get("LIGHTLINT_CACHE_DIR") or folder.NAME
    for number, word in enumerate(arguments):
        if word.startswith("--cache-dir="):
            named = word.partition("=")[2]
        elif word == "--cache-dir" and number + 1 < len(arguments):
            named = arguments[number + 1]
    return os.path.abspath(named)  # noqa: PTH100


def _key(arguments: Sequence[str]) -> str:
    environment = [(name, os.environ.get(name)) for name in _ENVIRONMENT]
    terminals = [stream.isatty() for stream in (sys.stdout, sys.stderr)]
    return repr((list(arguments), os.getcwd(), environment, terminals, sys.stdout.encoding, folder.this_tool()))  # noqa: PTH109
