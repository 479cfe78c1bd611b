"""What ends `lightlint confirm` from outside: Ctrl-C, a terminal that closes, SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """lightlint was told to end; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def status(self) -> int:
        """The exit status that shells use for a program ended by this signal."""
        return 128 + self.number


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` at the first signal that asks to end. The next one ends lightlint, the reaper ends the run."""

    def first(number: int, _frame: FrameType | None) -> None:
        for each in watched:
            signal.signal(each, signal.SIG_DFL)
        raise Interrupted(number)

    watched = {each: before for each in _ENDING if (before := signal.getsignal(each)) is not signal.SIG_IGN}
    try:
        for each in watched:
            signal.signal(each, first)
        yield
    finally:
        for each, before in watched.items():
            signal.signal(each, before)
