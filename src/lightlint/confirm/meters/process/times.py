"""Step times with and without a call that changes nothing but time: every second call of it is left out.

Only in a run that traces no lines. Both kinds of step begin with the GPU at rest, so that each pays for its own work.
"""

from __future__ import annotations

import sys
import time
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.guard import quiet
from lightlint.confirm.meters.frames import places
from lightlint.confirm.meters.process.memory import PEAKS

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MOST = 200


def install(session: Session) -> None:
    """Watch `torch.cuda.empty_cache`, which gives unused memory back and has no other effect."""
    if not session.plan.trace:
        session.on_import("times", "torch", lambda torch: _Calls(session).watch(torch))


class _Calls:
    """The calls so far and when the last one ended."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._number = 0
        self._ended = 0.0
        self._skipped = False
        self._tell = session.guard("times")(self._told)

    def watch(self, torch: ModuleType) -> None:
        cuda: Any = torch.cuda
        call = cuda.empty_cache

        @wraps(call)
        def empty_cache() -> None:
            if not cuda.is_initialized() or self._number >= _MOST:
                call()
                return
            self._timed(cuda, call)

        cuda.empty_cache = empty_cache

    def _timed(self, cuda: Any, call: Any) -> None:
        with quiet():
            cuda.synchronize()
        began = time.perf_counter()
        self._number += 1
        skip = self._number % 2 == 0
        if not skip:
            call()
        seconds = time.perf_counter() - began
        since = began - self._ended if self._ended else None
        self._tell(skip, seconds, since)
        self._skipped = skip
        self._ended = time.perf_counter()

    def _told(self, skip: bool, seconds: float, since: float | None) -> None:
        self._session.record.emit(
            "timed-call",
            number=self._number,
            skipped=skip,
            seconds=round(seconds, 6),
            since=since if since is None else round(since, 6),
            behind_skipped=self._skipped,
            peak=PEAKS.take("times"),
            places=places(sys._getframe(2)),
        )
