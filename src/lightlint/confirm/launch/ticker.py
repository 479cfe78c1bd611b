"""The line that tells on a terminal that a run goes on: ranks, step, time. Nothing where nobody looks."""

from __future__ import annotations

import os
import sys

_CLEAR = "\x1b[K"  # to the end of the line


class Ticker:
    """One line, written over at each tick; what the program writes comes over it, too.

    Args:
        what: which of several runs it is, empty for the first.
        began: seconds of the monotonic clock.
    """

    def __init__(self, what: str, began: float) -> None:
        self._what = f"{what} run, " if what else ""
        self._began = began
        self._shows = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def tick(self, now: float, ranks: int, step: int) -> None:
        """Write it anew; the cursor goes back to its begin, for the program to write there."""
        doing = "starting" if ranks == 0 else f"{ranks} ranks, step {step}" if ranks > 1 else f"step {step}"
        self._write(f"lightlint: {self._what}{doing}, {now - self._began:.0f} s{_CLEAR}\r")

    def end(self) -> None:
        """Take it away."""
        self._write(_CLEAR)

    def _write(self, text: str) -> None:
        if self._shows:
            sys.stderr.write(text)
            sys.stderr.flush()
