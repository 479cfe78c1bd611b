"""Ends a raw training loop after a few steps; Lightning's loops end by their own limits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session


class Cut(SystemExit):
    """Ends the program like `sys.exit()`. What follows the loop is beyond the cut."""


def cut(session: Session) -> None:
    """End the program here; where its own handler swallowed the first cut, without asking it again.

    Raises:
        Cut: the first time.
    """
    if session.reason == "cut":
        session.end()
        os._exit(0)
    session.reason = "cut"
    raise Cut(0)
