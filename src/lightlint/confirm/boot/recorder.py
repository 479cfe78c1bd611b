"""Events to a file of JSON lines, one for each process, whole lines only."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from lightlint.confirm.records import INCOMPLETE, SUFFIX


class Recorder:
    """Writes the events of this process; a forked child goes on in a file of its own.

    A disk that is full ends the recording, not the program.

    Args:
        directory: where the records of the run lie.
        step: tells the optimizer steps taken so far.
    """

    def __init__(self, directory: str, step: Callable[[], int]) -> None:
        self._directory = Path(directory)
        self._step = step
        self._lock = threading.RLock()
        self._file: TextIO | None = None
        self._failed = False
        os.register_at_fork(after_in_child=self._forked)

    def emit(self, kind: str, **fields: Any) -> None:
        """Write one event."""
        with self._lock:
            if self._failed:
                return
            event = {"kind": kind, "time": round(time.monotonic(), 6), "step": self._step(), **fields}
            try:
                self._opened().write(json.dumps(event, default=str) + "\n")
            except OSError:
                self._failed = True
                self._tell_failed()
            except ValueError:  # closed: the interpreter ends
                self._failed = True

    def close(self) -> None:
        """Write nothing more."""
        with self._lock:
            self._failed = True
            if self._file is not None:
                self._file.close()
                self._file = None

    def _opened(self) -> TextIO:
        if self._file is None:
            self._file = self._path(SUFFIX).open("a", buffering=1, encoding="utf-8")
        return self._file

    def _path(self, suffix: str) -> Path:
        return self._directory / f"{socket.gethostname()}-{os.getpid()}{suffix}"

    def _tell_failed(self) -> None:
        """An empty file needs no room on a full disk."""
        try:
            self._path(INCOMPLETE).touch()
        except OSError:  # nobody can be told
            return

    def _forked(self) -> None:
        self._lock = threading.RLock()  # another thread may have held it when this process was made
        self._file = None
