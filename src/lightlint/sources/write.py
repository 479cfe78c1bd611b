"""Files are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from lightlint.sources.source import UnwritableError


def write(path: str | Path, data: bytes) -> None:
    """Replace a file's content: a temporary file beside it takes its mode, its owner if possible, then its name.

    A symbolic link stays one; the file it leads to is replaced.

    Raises:
        UnwritableError: the file is read-only, or its directory does not take a new file.
    """
    import tempfile  # only a run that repairs pays for it

    try:
        target = Path(path).resolve(strict=True)
        if not os.access(target, os.W_OK):
            raise UnwritableError("cannot be written: the file is read-only")
        handle, name = tempfile.mkstemp(prefix=".lightlint-", dir=target.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            _take_after(target.stat(), temporary)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise UnwritableError(f"cannot be written: {reason or error}") from error


def _take_after(status: os.stat_result, path: Path) -> None:
    made = path.stat()
    if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid) and hasattr(os, "chown"):
        with contextlib.suppress(OSError):
            os.chown(path, status.st_uid, status.st_gid)
    path.chmod(stat.S_IMODE(status.st_mode))
