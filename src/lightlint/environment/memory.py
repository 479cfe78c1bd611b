"""A forecast of a training step's memory, as `lightlint forecast` wrote it, held against the GPUs of environments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightlint.environment.describing.side import Side, SideError
from lightlint.environment.rows import BREAKS, CHANGES, DIFFERS, FAILS, Row

MIB = 2**20
_HOW = "make one with `lightlint forecast --output-format json -- COMMAND > FILE`"


@dataclass(frozen=True, slots=True)
class Need:
    """What a step takes of a GPU.

    Attributes:
        least: MiB below which it does not fit: what the allocator reserves at least, and the CUDA context.
        most: MiB that are surely enough.
        what: the step, as rows speak of it.
    """

    least: int
    most: int
    what: str

    def fits(self, size: int) -> bool | None:
        """Whether it fits a GPU of `size` MiB; None where that cannot be told."""
        return True if size >= self.most else False if size < self.least else None


def read_need(path: Path) -> Need:
    """What a forecast says.

    Raises:
        SideError: the file cannot be read, or holds no forecast.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SideError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise SideError(f"{path}: no forecast; {_HOW}") from error
    if not isinstance(raw, dict) or not {"command", "reserved", "context"} <= raw.keys():
        raise SideError(f"{path}: no forecast; {_HOW}")
    if raw["reserved"] is None:
        raise SideError(f"{path}: holds no forecast: {raw.get('problem') or 'it failed'}")
    return _need(raw)


def _need(raw: dict[str, Any]) -> Need:
    low, high = ((reserved + raw["context"]) // MIB for reserved in raw["reserved"])
    batch = (raw.get("step") or raw.get("measured") or {}).get("batch")
    size = f"{low:,} to {high:,} MiB" if high > low else f"{low:,} MiB"
    said = "took" if raw.get("measured") else "takes"
    return Need(low, high, f"a step of `{raw['command']}`{f' with batch {batch}' if batch else ''} {said} {size}")


def held_against(need: Need, side: Side) -> Iterator[Row]:
    """Whether a step fits the smallest GPU of an environment.

    Raises:
        SideError: it tells nothing of GPUs.
    """
    size = _smallest(side)
    if not size:
        yield Row(FAILS, "gpu memory", "no GPU", None, need.what)
        return
    weight, verdict = {
        True: (DIFFERS, "it fits"),
        False: (BREAKS, "out of memory"),
        None: (CHANGES, "it may be too little, as far as the allocator's blocks fit together"),
    }[need.fits(size)]
    yield Row(weight, "gpu memory", f"{size:,} MiB", None, f"{need.what}: {verdict}")


def compared(need: Need, first: Side, second: Side) -> Iterator[Row]:
    """Whether a step fits the smaller GPU of two environments.

    Raises:
        SideError: one of them tells nothing of GPUs.
    """
    sizes = [_smallest(side) for side in (first, second)]
    shown = [f"{size:,} MiB" if size else "no GPU" for size in sizes]
    if not any(sizes):
        return
    smaller = (first, second)[sizes.index(min(sizes))]
    fits = [need.fits(size) if size else False for size in sizes]
    if fits[0] == fits[1]:
        verdict = {True: "it fits both", False: "it fits neither", None: "it may fit neither"}[fits[0]]
        weight = DIFFERS if fits[0] else FAILS
    elif False in fits:
        weight, verdict = BREAKS, f"it does not fit {smaller.name}"
    else:
        weight, verdict = CHANGES, f"it may not fit {smaller.name}"
    yield Row(weight, "gpu memory", shown[0], shown[1], f"{need.what}: {verdict}")


def _smallest(side: Side) -> int:
    """MiB of the smallest GPU; 0 where there is none."""
    if not side.machine:
        raise SideError(f"{side.name}: tells nothing of GPUs to hold the forecast against; take a snapshot there")
    gpus = side.machine.get("gpus") or []
    if any(gpu.get("mig") for gpu in gpus):
        raise SideError(f"{side.name}: its GPU is divided (MIG), and how much a part has is not in the snapshot")
    return min((int(gpu["memory_mib"]) for gpu in gpus), default=0)
