"""The answer to where a value comes from."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

DEPTH = 8  # steps after which a search for origins gives up


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from: the canonical class (or function) name, and the call that made it where one is in sight."""

    name: str
    call: cst.Call | None = None
