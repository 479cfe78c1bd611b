"""What a command writes beside its standard output."""

from __future__ import annotations

from pathlib import Path

from lightlint.config.options import SettingsError
from lightlint.sources.source import UnwritableError
from lightlint.sources.write import write


def save(path: Path, data: bytes, option: str) -> None:
    """Make the file that an option names, or replace what is in it, whole or not at all.

    Raises:
        SettingsError: it cannot be written.
    """
    try:
        path.touch()
        write(path, data)
    except OSError as error:
        raise SettingsError(f"{option}: {path}: {error.strerror}") from error
    except UnwritableError as error:
        raise SettingsError(f"{option}: {path}: {error}") from error
