"""Whether what the program saves can be loaded with torch's defaults, and which keys a load passes over."""

from __future__ import annotations

import io
import os
import sys
from collections import Counter
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.meters.frames import places

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_LARGEST = 256 << 20  # bytes of a file that is loaded to try it
_MOST, _MOST_HERE = 12, 3  # files tried in all, and of one place


def install(session: Session) -> None:
    """Try files behind `torch.save`; look at what `Module.load_state_dict` returns."""
    meter = _Checkpoints(session)
    session.on_import("checkpoints", "torch", meter.watch)
    session.on_import("checkpoints", "torch.nn.modules.module", meter.watch_loads)


class _Checkpoints:
    """The checkpoints of this process."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tried: Counter[Any] = Counter()
        guard = session.guard("checkpoints")
        self._try = guard(self._attempt)
        self._tell = guard(self._told)

    def watch(self, torch: ModuleType) -> None:
        save = torch.save

        @wraps(save)
        def wrapped(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
            save(obj, f, *args, **kwargs)
            self._try(torch, f)

        torch.save = wrapped  # type: ignore[attr-defined]

    def _attempt(self, torch: Any, f: Any) -> None:
        found = places(sys._getframe(2))
        here = tuple(found[:1])
        if self._tried[here] >= _MOST_HERE or self._tried.total() >= _MOST:
            return
        written = _written(f)
        if written is None:
            return
        self._tried[here] += 1
        error = ""
        try:
            torch.load(written, map_location="cpu", weights_only=True)
        except Exception as refused:  # that is what is asked
            error = str(refused)[:1000]
        path = "" if isinstance(written, io.BytesIO) else os.fspath(written)
        self._session.record.emit("saved", path=path, error=error, places=found)

    def watch_loads(self, module: ModuleType) -> None:
        load: Any = module.Module.load_state_dict

        @wraps(load)
        def load_state_dict(this: Any, *args: Any, **kwargs: Any) -> Any:
            result = load(this, *args, **kwargs)
            self._tell(result)
            return result

        module.Module.load_state_dict = load_state_dict

    def _told(self, result: Any) -> None:
        missing, unexpected = list(result.missing_keys), list(result.unexpected_keys)
        self._session.record.emit(
            "loaded", missing=missing[:20], unexpected=unexpected[:20], places=places(sys._getframe(2))
        )


def _written(f: Any) -> Any:
    """What `torch.save` has just written, to be read: a path, or the content of a buffer; None where it holds more."""
    if isinstance(f, io.BytesIO):
        return io.BytesIO(f.getvalue()) if f.tell() == f.getbuffer().nbytes <= _LARGEST else None
    path = f if isinstance(f, str | os.PathLike) else getattr(f, "name", None)
    if not isinstance(path, str | os.PathLike) or not Path(path).is_file():
        return None
    if path is not f:
        f.flush()
    size = Path(path).stat().st_size
    return path if size <= _LARGEST and (path is f or f.tell() == size) else None
