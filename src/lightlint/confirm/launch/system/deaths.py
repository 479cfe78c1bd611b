"""When each recording process of a run went, and how: of those that are killed nobody else can tell it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lightlint.confirm.records import SUFFIX

Death = tuple[
    float, int | None
]  # when it was noticed; the status that `wait` gives, None where its parent had it first
_STATE, _STATUS = 0, -1  # fields of /proc/PID/stat behind the program's name


class Deaths:
    """The processes that are gone.

    Args:
        records: the folder of the run's records.
    """

    def __init__(self, records: Path) -> None:
        self._records = records
        self._found: dict[str, Death] = {}

    def look(self, now: float) -> None:
        """Notice who went since the last look."""
        for path in self._records.glob(f"*{SUFFIX}"):
            name = path.name.removesuffix(SUFFIX)
            if name in self._found:
                continue
            fields = _fields(name.rpartition("-")[2])
            if not fields:
                self._found[name] = now, None
            elif fields[_STATE] in {"Z", "X"}:
                self._found[name] = now, int(fields[_STATUS])

    @property
    def found(self) -> Mapping[str, Death]:
        """By the name of their records: who went, in order."""
        return self._found


def _fields(process: str) -> list[str]:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return []
