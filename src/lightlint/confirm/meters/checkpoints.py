"""Whether what the program saves can be loaded with torch's defaults, and which keys a load passes over."""

from __future__ import annotations

import os
import sys
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.meters.frames import places

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_LARGEST = 256 << 20  # bytes of a file that is loaded to try it
_MOST = 6  # files tried


def install(session: Session) -> None:
    """Try files behind `torch.save`; look at what `Module.load_state_dict` returns."""
    meter = _Checkpoints(session)
    session.on_import("checkpoints", "torch", meter.watch)
    session.on_import("checkpoints", "torch.nn.modules.module", meter.watch_loads)


class _Checkpoints:
    """The checkpoints of this process."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tried = 0
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
        if not isinstance(f, str | os.PathLike) or self._tried >= _MOST or Path(f).stat().st_size > _LARGEST:
            return
        self._tried += 1
        error = ""
        try:
            torch.load(f, map_location="cpu", weights_only=True)
        except Exception as refused:  # that is what is asked
            error = str(refused)[:1000]
        self._session.record.emit("saved", path=os.fspath(f), error=error, places=places(sys._getframe(2)))

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
