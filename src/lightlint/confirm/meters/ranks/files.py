"""Which files and directories the program's own lines make or write, by Python's audit events; what lines they then hold."""

from __future__ import annotations

import collections
import os
import sys
import threading
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.meters.frames import is_users, places

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MOST = 20  # events for one path and place: more say nothing new
_LARGEST = 4 << 20  # bytes of a file whose lines are counted
_LOCKS = (type(threading.Lock()), type(threading.RLock()))


def install(session: Session) -> None:
    """Listen for files opened to be written. An audit hook stays for the life of the process; it is one comparison."""
    files = _Files(session)
    opened, made = session.guard("files")(files.opened), session.guard("files")(files.made)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if arguments[2] & (os.O_WRONLY | os.O_RDWR):
                opened(arguments[0], str(arguments[1] or ""))
        elif event == "os.mkdir":
            made(arguments[0])

    sys.addaudithook(hook)
    session.on_import("files", "torch", lambda torch: _watch_save(torch, opened))
    session.at_end.append(session.guard("files")(files.end))


def _watch_save(torch: ModuleType, opened: Any) -> None:
    """`torch.save` opens its file in C++, which audits nothing."""
    save = torch.save

    def wrapped(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(f, str | os.PathLike):
            opened(f, "wb")
        save(obj, f, *args, **kwargs)

    torch.save = wrapped  # type: ignore[attr-defined]


class _Files:
    """What this process wrote so far."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._records = os.path.realpath(session.plan.records)
        self._counts: collections.Counter[tuple[str, Any]] = collections.Counter()
        self._written: dict[str, int] = {}  # path to the bytes it held before

    def opened(self, path: Any, mode: str) -> None:
        if isinstance(path, int):
            return
        name = os.path.realpath(os.fsdecode(path))
        before = os.path.getsize(name) if "a" in mode and os.path.exists(name) else 0  # noqa: PTH110, PTH202
        if self._tell(name, "file", mode):
            self._written.setdefault(name, before)

    def made(self, path: Any) -> None:
        self._tell(path, "directory", "")

    def _tell(self, path: Any, what: str, mode: str) -> bool:
        name = os.path.realpath(os.fsdecode(path))
        if name.startswith((self._records, "/dev/", "/proc/")):
            return False
        found = places(sys._getframe(1))
        key = name, tuple(found[:1])
        self._counts[key] += 1
        if found and self._counts[key] <= _MOST:
            locked = _holds_lock(sys._getframe(1))
            self._session.record.emit("write", path=name, what=what, mode=mode, places=found, locked=locked)
        return bool(found)

    def end(self) -> None:
        """Tell how many lines this run put into the written files, and how many different ones."""
        for name, before in self._written.items():
            path = Path(name)
            try:
                content = path.read_bytes() if path.stat().st_size <= _LARGEST else b"\0"
            except OSError:
                continue
            if b"\0" not in content:
                lines = content[before:].splitlines()
                self._session.record.emit("written", path=name, lines=len(lines), distinct=len(set(lines)))


def _holds_lock(frame: FrameType | None) -> bool:
    """Whether a lock of threads that the user's frames can name is taken just now."""
    for _ in range(60):
        if frame is None:
            return False
        if is_users(frame.f_code.co_filename):
            this = frame.f_locals.get("self")
            named = [*frame.f_locals.values(), *frame.f_globals.values(), *getattr(this, "__dict__", {}).values()]
            if any(isinstance(each, _LOCKS) and _taken(each) for each in named):
                return True
        frame = frame.f_back
    return False


def _taken(lock: Any) -> bool:
    return bool(lock._is_owned() if hasattr(lock, "_is_owned") else lock.locked())
