"""One thing that a run showed, and how it is said."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Place = tuple[str, int, str]  # file, row, function


@dataclass(frozen=True, slots=True)
class Observation:
    """What a run showed.

    Attributes:
        kind: what it is, for programs: `raised`, `left`, `exited`, `killed`, `stood still`, `parted`, `lost`, `loop left`,
            `unequal batches`, `same samples`, `one file`.
        message: one sentence: who, where, after which step.
        details: further ones: in what the others waited.
        is_fault: whether it makes the run a failed one.
        ranks: who did it.
        places: where, the user's frames from the innermost outwards.
        probes: the probes of findings that say the same.
    """

    kind: str
    message: str
    details: tuple[str, ...] = ()
    is_fault: bool = True
    ranks: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()
    probes: frozenset[str] = frozenset()

    @property
    def is_first(self) -> bool:
        """Whether it is about a rank that is no longer with the others, which comes before all else."""
        return self.kind not in {"same samples", "one file"}


def places_of(raw: Iterable[Sequence[Any]]) -> tuple[Place, ...]:
    """Recorded places."""
    return tuple((str(file), int(row), str(function)) for file, row, function in raw)


def at(places: Sequence[Place]) -> str:
    """Where, as a reader looks for it; empty where nobody knows."""
    if not places:
        return ""
    file, row, function = places[0]
    return f" at {_below(file)}:{row}" + (f" in {function}" if function != "<module>" else "")


def after(steps: int) -> str:
    """After which optimizer step."""
    return f"after step {steps}" if steps else "before the first step"


def listed(ranks: Iterable[int]) -> str:
    """`rank 1`, or `ranks 0, 1 and 2`."""
    numbers = [str(rank) for rank in ranks]
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    return f"ranks {', '.join(numbers[:-1])} and {numbers[-1]}"


def _below(file: str) -> str:
    path, here = Path(file), Path(os.path.realpath(Path.cwd()))
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
