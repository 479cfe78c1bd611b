"""What changes between entering and leaving a finding's lines: the evidence belongs to the user's own line.

`sys.monitoring` where Python has it (3.12): its events are set on the code objects that hold a finding and cost nothing
elsewhere. Before, `sys.settrace`, which is switched off once every finding was hit often enough.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.guard import is_quiet
from lightlint.confirm.plan import Target

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_DECORATED = 6  # rows: a decorated function's code begins at its first decorator, its finding at `def`
MOST_HITS = 12  # of each finding; a line that runs oftener tells nothing new
_TOOL = 4  # sys.monitoring's tool numbers 0-3 and 5 have names of their own


def install(session: Session) -> None:
    """Watch the plan's lines, in this thread and those started later."""
    if not session.plan.trace or not session.plan.targets:
        return
    watch = _Watch(session)
    if sys.version_info >= (3, 12):
        _monitor(watch)
    elif sys.gettrace() is not None:
        session.record.emit(
            "meter-error", meter="lines", message="another tool traces this process (debugger, coverage)"
        )
    else:
        for frame in _running():  # a companion starts in the middle of its program
            if watch.targets(frame.f_code):
                frame.f_trace = watch.local
        sys.settrace(watch.trace)
        threading.settrace(watch.trace)


def _running() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


class _Watch:
    """Follows frames through the findings' lines."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._targets: dict[str, list[Target]] = {}
        for target in session.plan.targets:
            self._targets.setdefault(target.file, []).append(target)
        self._open = {target.finding for target in session.plan.targets}  # what was not hit often enough
        self._elsewhere: set[str] = set()  # names of files without a finding
        self._hits: dict[int, int] = {}
        self._inside: dict[tuple[int, int], _Entry] = {}  # (frame, finding)
        self._in_code: dict[CodeType, list[Target]] = {}
        self._named: dict[CodeType, list[int]] = {}
        self._calls: dict[int, int] = {}
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._guarded = session.guard("lines")
        self.at = self._guarded(self._at)
        self.left = self._guarded(self._left)
        self.failed = self._guarded(self._failed)
        self.called = self._guarded(self._called)

    def targets(self, code: CodeType) -> list[Target]:
        """The findings whose lines lie in a code object."""
        known = self._in_code.get(code)
        if known is None:
            known = self._in_code[code] = self._find(code)
        return known

    def _find(self, code: CodeType) -> list[Target]:
        here = self._targets.get(self._path(code))
        if not here:
            return []
        rows = {row for _, _, row in code.co_lines() if row}
        return [target for target in here if any(target.first <= row <= target.last for row in rows)]

    def _path(self, code: CodeType) -> str:
        path = self._files.get(code.co_filename)
        if path is None:
            folder, name = os.path.split(code.co_filename)
            if folder not in self._folders:
                self._folders[folder] = os.path.realpath(folder)
            path = os.path.join(self._folders[folder], name)  # noqa: PTH118
            path = self._files[code.co_filename] = os.path.realpath(path) if os.path.islink(path) else path  # noqa: PTH114
        return path

    def named(self, code: CodeType) -> list[int]:
        """The findings about the function that a code object is the body of."""
        known = self._named.get(code)
        if known is None:
            here = self._targets.get(self._path(code), ())
            row = code.co_firstlineno
            known = self._named[code] = [
                target.finding
                for target in here
                if code.co_name in target.names and target.first - _DECORATED <= row <= target.last
            ]
        return known

    def trace(self, frame: FrameType, event: str, _argument: Any) -> Callable[..., Any] | None:
        """The global trace function: local traces only where a finding lies.

        An import of torch and Lightning calls half a million functions, so files without a finding are left by the name
        of the file: a code object is hashed anew, with all its constants, at each look into a dict.
        """
        if not self._open:
            sys.settrace(None)
            return None
        code = frame.f_code
        if code.co_filename in self._elsewhere:
            return None
        if self._path(code) not in self._targets:
            self._elsewhere.add(code.co_filename)
            return None
        if event == "call" and self.named(code):
            self.called(code)
        return self.local if event == "call" and self.targets(code) else None

    def local(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line":
            self.at(frame, frame.f_lineno)
        elif event == "exception":
            self.failed(frame, argument[1] if isinstance(argument[1], BaseException) else argument[0]())
        elif event == "return":
            self.left(frame)
        return self.local

    def _at(self, frame: FrameType, row: int) -> None:
        for target in self.targets(frame.f_code):
            key = (id(frame), target.finding)
            if target.first <= row <= target.last:
                if key not in self._inside and target.finding in self._open:
                    self._hits[target.finding] = hits = self._hits.get(target.finding, 0) + 1
                    if hits == MOST_HITS:
                        self._open.discard(target.finding)
                    seen = self._look(frame)
                    self._inside[key] = _Entry(time.perf_counter(), seen)
            elif key in self._inside:
                self._tell(frame, target.finding, self._inside.pop(key), row)

    def _failed(self, frame: FrameType, error: BaseException) -> None:
        """Note what comes up through the lines; the error itself is not kept, its frames hold the program's tensors."""
        if isinstance(error, StopIteration | StopAsyncIteration | GeneratorExit | SystemExit):
            return
        for target in self.targets(frame.f_code):
            entry = self._inside.get((id(frame), target.finding))
            if entry is not None and not entry.raised:
                entry.raised = f"{type(error).__name__}: {str(error)[:1000]}"

    def _left(self, frame: FrameType) -> None:
        for target in self.targets(frame.f_code):
            entry = self._inside.pop((id(frame), target.finding), None)
            if entry is not None:
                self._tell(frame, target.finding, entry)

    def _called(self, code: CodeType) -> None:
        for finding in self.named(code):
            self._calls[finding] = number = self._calls.get(finding, 0) + 1
            if number <= MOST_HITS:
                self._session.record.emit("call", finding=finding, function=code.co_name, number=number)

    def _look(self, frame: FrameType) -> dict[str, Mapping[str, Any]]:
        return {name: snapshot(frame) for name, snapshot in self._session.snapshots.items()}

    def _tell(self, frame: FrameType, finding: int, entry: _Entry, then: int | None = None) -> None:
        seconds = time.perf_counter() - entry.began
        changes = {
            name: {key: [entry.seen.get(name, {}).get(key), value] for key, value in now.items()}
            for name, now in self._look(frame).items()
        }
        self._session.record.emit(
            "line",
            finding=finding,
            hit=self._hits[finding],
            seconds=round(seconds, 6),
            function=frame.f_code.co_name,
            changes=changes,
            then=then,
            raised=entry.raised,
        )


class _Entry:
    """When a frame came to a finding's lines and what there was."""

    def __init__(self, began: float, seen: Mapping[str, Mapping[str, Any]]) -> None:
        self.began = began
        self.seen = seen
        self.raised = ""


def _monitor(watch: _Watch) -> None:
    """Follow the findings' code objects by `sys.monitoring`."""
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    events = monitoring.events
    monitoring.use_tool_id(_TOOL, "lightlint")

    def started(code: CodeType, _offset: int) -> Any:
        if is_quiet():
            return None
        if watch.named(code):
            watch.called(code)
        if not watch.targets(code):
            return None if watch.named(code) else monitoring.DISABLE
        monitoring.set_local_events(_TOOL, code, events.LINE | events.PY_RETURN)
        return None if watch.named(code) else monitoring.DISABLE

    def line(code: CodeType, row: int) -> Any:
        if not watch.targets(code):
            return monitoring.DISABLE
        watch.at(sys._getframe(1), row)
        return None

    def returned(code: CodeType, _offset: int, _value: Any) -> Any:
        watch.left(sys._getframe(1))

    def raised(code: CodeType, _offset: int, error: BaseException) -> Any:
        if watch.targets(code):
            watch.failed(sys._getframe(1), error)

    def unwound(code: CodeType, _offset: int, _error: BaseException) -> Any:
        watch.left(sys._getframe(1))

    monitoring.register_callback(_TOOL, events.PY_START, started)
    monitoring.register_callback(_TOOL, events.PY_RESUME, started)
    monitoring.register_callback(_TOOL, events.LINE, line)
    monitoring.register_callback(_TOOL, events.PY_RETURN, returned)
    monitoring.register_callback(_TOOL, events.RAISE, raised)
    monitoring.register_callback(_TOOL, events.PY_UNWIND, unwound)
    for frame in _running():
        if watch.targets(frame.f_code):
            monitoring.set_local_events(_TOOL, frame.f_code, events.LINE | events.PY_RETURN)
    monitoring.set_events(_TOOL, events.PY_START | events.RAISE | events.PY_UNWIND)
