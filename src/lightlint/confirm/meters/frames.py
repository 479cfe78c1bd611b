"""Where the program is: the user's own frames among those of libraries and of the recording."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import FrameType

_DEEPEST = 60  # frames looked through
_LIBRARIES = tuple(
    f"{os.path.realpath(path)}{os.sep}"
    for path in (
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        str(Path(__file__).parents[2]),
    )
)
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
Place = tuple[str, int, str]


@cache
def is_users(filename: str) -> bool:
    """Whether code of this file is the program's: no library, no part of Python, no `<frozen ...>`."""
    path = os.path.realpath(filename)
    return not filename.startswith("<") and not path.startswith(_LIBRARIES) and not any(p in path for p in _PACKAGES)


def places(frame: FrameType | None = None, most: int = 6) -> list[Place]:
    """The user's frames from the innermost outwards, each (file, row, function)."""
    found: list[Place] = []
    frame = frame or sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame is None or len(found) == most:
            break
        if is_users(frame.f_code.co_filename):
            found.append((os.path.realpath(frame.f_code.co_filename), frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return found
