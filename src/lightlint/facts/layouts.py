"""The layouts of tensors that losses compare."""

from __future__ import annotations

from enum import StrEnum


class Layout(StrEnum):
    """The shape of a tensor: one dimension, or a last dimension of 1 behind others; a choice out of the second dimension
    of a network's output, with that dimension still there, or gone."""

    FLAT = "flat"
    COLUMN = "column"
    PICKED = "picked"
    REDUCED = "reduced"
