"""Whether a Trainer runs in this process."""

from __future__ import annotations

_fitting = 0


def fitting() -> bool:
    """Whether a Trainer runs its loops in this process just now."""
    return _fitting > 0


def enter() -> None:
    """A Trainer begins."""
    global _fitting  # one process has one stack of Trainers
    _fitting += 1


def leave() -> None:
    """A Trainer is done."""
    global _fitting
    _fitting = max(0, _fitting - 1)
