"""Which warnings the program's lines give, whatever its filters show of them."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.guard import is_quiet
from lightlint.confirm.meters.frames import Place, places

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MOST = 400


def install(session: Session) -> None:
    """Listen at `warnings.warn`, which Python code calls, and at what shows a warning, to which C++ code comes."""
    tell = session.guard("warnings")(_Warnings(session).tell)
    warn: Any = warnings.warn
    show: Any = warnings._showwarnmsg  # type: ignore[attr-defined]

    def wrapped(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **kwargs: Any) -> None:
        if not is_quiet():
            kind = type(message) if isinstance(message, Warning) else category or UserWarning
            tell(str(message), kind.__name__)
        warn(message, category, stacklevel + 1, source, **kwargs)  # one frame more lies in between

    def shown(message: Any) -> None:
        if not is_quiet():
            tell(str(message.message), message.category.__name__)
        show(message)

    warnings.warn = wrapped
    warnings._showwarnmsg = shown  # type: ignore[attr-defined]
    session.on_import("warnings", "torch", lambda torch: torch.set_warn_always(True))  # else its C++ code warns once


class _Warnings:
    """What was told already: a warning and the place it came from count once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._told: set[tuple[str, Place | None]] = set()

    def tell(self, message: str, category: str) -> None:
        found = places(sys._getframe(1))
        key = message[:200], found[0] if found else None
        if key not in self._told and len(self._told) < _MOST:
            self._told.add(key)
            self._session.record.emit("warning", category=category, message=message[:600], places=found)
