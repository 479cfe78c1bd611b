"""The part that runs inside the user's processes: it records, and never changes how the program ends."""

from __future__ import annotations

import os

from lightlint.confirm.plan import VARIABLE


def begin() -> None:
    """Start recording this process, if it belongs to a run. Called once, before the program's first line."""
    path = os.environ.get(VARIABLE)
    if not path or not os.path.exists(path):  # noqa: PTH110  # pathlib costs 10 ms in every process of the run
        return
    from lightlint.confirm import plan
    from lightlint.confirm.boot.start import start

    start(plan.read(path))
