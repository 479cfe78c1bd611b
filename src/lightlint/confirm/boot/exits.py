"""How a process ends: errors, `sys.exit`, `os._exit`, and the ends of child processes, which no `atexit` sees."""

from __future__ import annotations

import builtins
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.guard import quiet
from lightlint.confirm.meters.frames import is_users, places

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_FRAMES = 40  # of a traceback, the innermost ones
_LENGTH = 1000  # characters of a message's begin and of its end


def install(session: Session) -> None:
    """Watch every way out of this process."""
    _watch_exceptions(session)
    _watch_exits(session)
    session.on_import("exits", "multiprocessing.process", lambda module: _watch_children(session, module))
    session.on_import("exits", "torch.multiprocessing.spawn", lambda module: _watch_spawned(session, module))


def tell_exception(session: Session, error: BaseException) -> None:
    """Record an exception with the frames it came through; a later call for the same one adds nothing."""
    if getattr(error, "__lightlint_told__", False):
        return
    frames = [
        [str(Path(frame.filename).absolute()), frame.lineno, frame.name]
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    session.record.emit(
        "exception",
        type=type(error).__name__,
        message=_both_ends(str(error)),
        frames=frames[-_FRAMES:],
        places=[frame for frame in reversed(frames) if is_users(frame[0])],
        causes=list(_causes(error)),
    )
    try:
        error.__lightlint_told__ = True  # type: ignore[attr-defined]
    except AttributeError:  # an exception with slots is told twice
        return


def _both_ends(text: str) -> str:
    """The begin and the end of a text: what a child process raised stands at the end of what its parent does."""
    return text if len(text) <= 2 * _LENGTH else f"{text[:_LENGTH]} ... {text[-_LENGTH:]}"


def _causes(error: BaseException) -> Iterator[str]:
    """What the errors behind an error say, the nearest first: those it was raised from or while handling."""
    seen = {id(error)}
    behind = error.__cause__ or error.__context__
    while behind is not None and id(behind) not in seen and len(seen) < 10:
        seen.add(id(behind))
        yield f"{type(behind).__name__}: {behind}"[:500]
        behind = behind.__cause__ or behind.__context__


def _watch_exceptions(session: Session) -> None:
    shown = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        tell_exception(session, error)
        session.reason = "exception"
        shown(kind, error, trace)

    sys.excepthook = hook


def _watch_exits(session: Session) -> None:
    """Which of the user's lines ends the process by a call; libraries' own calls come after something else."""

    def told(name: str, leave: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(leave)
        def exit_(*args: Any, **kwargs: Any) -> Any:
            if is_users(sys._getframe(1).f_code.co_filename):
                with quiet():
                    code = args[0] if name != "exit" and args else args[-1] if len(args) > 1 else None
                    session.record.emit("exit", name=name, code=str(code or 0), places=places(sys._getframe(1)))
            return leave(*args, **kwargs)

        return exit_

    sys.exit = told("sys.exit", sys.exit)
    os._exit = told("os._exit", os._exit)
    quitter: Any = type(getattr(builtins, "exit", None))
    if "__call__" in vars(quitter):  # what `python -S` leaves out
        quitter.__call__ = told("exit", quitter.__call__)


def _watch_children(session: Session, module: ModuleType) -> None:
    """A child prints its error and ends without a word to `sys.excepthook`, a forked one also without `atexit`."""
    process: Any = module.BaseProcess
    bootstrap = process._bootstrap

    @wraps(bootstrap)
    def _bootstrap(child: Any, *args: Any, **kwargs: Any) -> Any:
        child.run = _telling(session, child.run)
        try:
            return bootstrap(child, *args, **kwargs)
        finally:
            if session.is_rank:  # loaders' workers have nothing to tell
                session.end()

    process._bootstrap = _bootstrap


def _watch_spawned(session: Session, module: ModuleType) -> None:
    """What runs the function of `mp.spawn` catches its errors and sends them to the parent as text."""
    wrap: Any = module._wrap

    def _wrap(function: Any, *args: Any, **kwargs: Any) -> Any:
        return wrap(_telling(session, function), *args, **kwargs)

    # a spawned child finds it by this name, where its own recording has put the like of it
    _wrap.__module__, _wrap.__qualname__ = wrap.__module__, wrap.__qualname__
    module._wrap = _wrap  # type: ignore[attr-defined]


def _telling(session: Session, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def telling(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except SystemExit:
            raise
        except BaseException as error:
            tell_exception(session, error)
            if session.reason == "finished":
                session.reason = "exception"
            raise

    return telling
