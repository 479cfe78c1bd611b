"""One difference, or one thing that is amiss, with why it can matter."""

from __future__ import annotations

from dataclasses import dataclass

# What breaks a run comes before what may change it, that before what only differs.
BREAKS, FAILS, CHANGES, SLOWS, DIFFERS = 100, 80, 60, 40, 10


@dataclass(frozen=True, slots=True)
class Row:
    """A difference between two environments, or a fault of one.

    Attributes:
        weight: how much it matters; rows are shown in this order.
        subject: what differs: a package, a machine's part, a variable.
        first: its value in the first environment, empty where it has none.
        second: its value in the second, None where only one is looked at.
        why: why it can matter to this code, one clause; empty where nothing is known.
        places: where in the code.
    """

    weight: int
    subject: str
    first: str
    second: str | None
    why: str = ""
    places: tuple[str, ...] = ()


def ordered(rows: list[Row]) -> tuple[Row, ...]:
    """The rows that matter most first, else by subject."""
    return tuple(sorted(rows, key=lambda row: (-row.weight, row.subject)))
