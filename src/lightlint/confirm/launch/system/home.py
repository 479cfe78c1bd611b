"""The folder of a run, which is gone afterwards, whatever becomes of the launcher."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lightlint.confirm.launch.system import reaper


@dataclass(frozen=True, slots=True)
class Home:
    """Where everything of one `lightlint confirm` lies, and the line to the reaper."""

    folder: Path
    pipe: int

    def new(self, *parts: str) -> Path:
        """A new folder.

        Raises:
            OSError: it cannot be made.
        """
        path = self.folder.joinpath(*parts)
        path.mkdir(parents=True)
        return path

    def tell_group(self, group: int) -> None:
        """Tell the reaper which process group runs; 0 for none."""
        with suppress(OSError):  # without a reaper the launcher still ends its own
            os.write(self.pipe, f"{group}\n".encode())


@contextmanager
def home() -> Iterator[Home]:
    """A folder for a run with a reaper beside it, which is started first: no moment is without one.

    Raises:
        OSError: there is no place to write.
    """
    folder = Path(tempfile.gettempdir()) / f"lightlint-confirm-{secrets.token_hex(6)}"
    reading, writing = os.pipe()
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", reaper.__file__, str(folder)],
        stdin=reading,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    os.close(reading)
    try:
        folder.mkdir(mode=0o700)
        yield Home(folder, writing)
    finally:
        reaper.remove(str(folder))
        os.close(writing)
        guard.wait()
