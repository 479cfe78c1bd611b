"""Keeps the recording out of the program's way: its errors are recorded, its own calls are not measured."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

if TYPE_CHECKING:
    from lightlint.confirm.boot.recorder import Recorder

P = ParamSpec("P")
_thread = threading.local()


def is_quiet() -> bool:
    """Whether the recording itself runs just now: what happens is not the program's doing."""
    return getattr(_thread, "depth", 0) > 0


@contextmanager
def quiet() -> Iterator[None]:
    """Around everything a meter does to look."""
    _thread.depth = getattr(_thread, "depth", 0) + 1
    try:
        yield
    finally:
        _thread.depth -= 1


class Guard:
    """Runs what belongs to one meter: quietly, timed, and never with an error that reaches the program.

    The first error is recorded and switches the meter off, so that its findings are told as not checked.
    """

    def __init__(self, meter: str, record: Recorder) -> None:
        self.meter = meter
        self.seconds = 0.0
        self.failed = False
        self._record = record

    def __call__(self, function: Callable[P, Any]) -> Callable[P, None]:
        """The function for its effect only: it returns nothing, raises nothing and does nothing inside the recording."""

        @wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
            if self.failed or is_quiet():
                return
            began = time.perf_counter()
            try:
                with quiet():
                    function(*args, **kwargs)
            except Exception as error:
                self.failed = True
                self._record.emit("meter-error", meter=self.meter, message=f"{type(error).__name__}: {error}")
            finally:
                self.seconds += time.perf_counter() - began

        return guarded
