"""Makes a `try` fail once: raises at the first line of its body, on one rank, to see what the program does then."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.guard import is_quiet
from lightlint.confirm.plan import Target

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

MESSAGE = "injected by lightlint"
_TOOL = 3  # one of sys.monitoring's free numbers, not that of the line meter


def install(session: Session) -> None:
    """Wait for the line; the plan's only target is the statement that is to fail."""
    target = next((each for each in session.plan.targets if each.finding == session.plan.inject), None)
    if target is None:
        return
    fault = _Fault(session, target)
    if sys.version_info >= (3, 12):
        _monitor(fault)
    elif sys.gettrace() is not None:
        session.record.emit("meter-error", meter="inject", message="another tool traces this process")
    else:
        sys.settrace(fault.trace)
        threading.settrace(fault.trace)


class _Fault:
    """Raises once, on its rank."""

    def __init__(self, session: Session, target: Target) -> None:
        self._session = session
        self._target = target
        self._files: dict[str, bool] = {}
        self.done = False

    def lies_in(self, code: CodeType) -> bool:
        """Whether the line belongs to a code object."""
        here = self._files.get(code.co_filename)
        if here is None:
            here = self._files[code.co_filename] = os.path.realpath(code.co_filename) == self._target.file
        return here and any(row == self._target.first for _, _, row in code.co_lines())

    def at(self, frame: FrameType, row: int) -> None:
        """Raise if this is the line: what the handler catches, a `RuntimeError` where it catches that, too."""
        if row == self._target.first and not self.done and not is_quiet() and _rank() == self._session.plan.inject_rank:
            self.done = True
            error = _made(self._target.names, frame)
            self._session.record.emit("injected", finding=self._target.finding, row=row, type=type(error).__name__)
            raise error

    def trace(self, frame: FrameType, event: str, _argument: Any) -> Callable[..., Any] | None:
        """The global trace function; Python switches tracing off once the local one has raised."""
        if self.done:
            return None
        return self._local if event == "call" and self.lies_in(frame.f_code) else None

    def _local(self, frame: FrameType, event: str, _argument: Any) -> Callable[..., Any]:
        if event == "line":
            self.at(frame, frame.f_lineno)
        return self._local


def _made(names: Sequence[str], frame: FrameType) -> BaseException:
    """An error of the kind that a name means in the frame."""
    for name in names:
        try:
            kind = eval(name, frame.f_globals, frame.f_locals)  # the text of the program's own `except`
            error = kind(MESSAGE)
        except Exception:
            continue
        if isinstance(error, BaseException):
            return error
    return RuntimeError(MESSAGE)


def _rank() -> int:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    rank = os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0"))
    return int(rank) if rank.isdigit() else 0


def _monitor(fault: _Fault) -> None:
    """An exception raised in a callback of `sys.monitoring` comes up in the program's own line."""
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    events = monitoring.events
    monitoring.use_tool_id(_TOOL, "lightlint-inject")

    def started(code: CodeType, _offset: int) -> Any:
        if fault.lies_in(code):
            monitoring.set_local_events(_TOOL, code, events.LINE)
        return monitoring.DISABLE

    def line(_code: CodeType, row: int) -> Any:
        fault.at(sys._getframe(1), row)

    monitoring.register_callback(_TOOL, events.PY_START, started)
    monitoring.register_callback(_TOOL, events.PY_RESUME, started)
    monitoring.register_callback(_TOOL, events.LINE, line)
    monitoring.set_events(_TOOL, events.PY_START | events.PY_RESUME)
