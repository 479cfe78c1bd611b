"""The one value that stands for "no constant"; apart from `names`, for summaries are made without libcst."""

from __future__ import annotations


class Unknown:
    """The value of an expression that is no constant."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()
