"""The runtime companion: runs the user's own command for a few steps and says with measurements whether findings are real."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightlint.confirm.companion import Companion

__all__ = ["Companion"]


def __getattr__(name: str) -> Any:
    """The companion, imported when asked for: the command and the recorded processes do without it."""
    if name == "Companion":
        from lightlint.confirm.companion import Companion

        return Companion
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
