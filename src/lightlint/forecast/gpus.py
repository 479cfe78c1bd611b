"""GPUs by name, from a table with sources, and budgets as people write them."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from lightlint.forecast.breakdown import MIB

CONTEXT = 540 * MIB  # what CUDA itself takes: 524 MiB measured on H200, about as much elsewhere


class BudgetError(Exception):
    """A GPU or a size that is not known; the text is one line."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: memory as `nvidia-smi` lists it, compute capability (major), and where the figure comes from."""

    name: str
    memory_mib: int
    capability: int
    source: str

    @property
    def usable(self) -> int:
        """Bytes that tensors can have: without the CUDA context."""
        return self.memory_mib * MIB - CONTEXT


@cache
def all_gpus() -> dict[str, Gpu]:
    """The table."""
    raw = tomllib.loads(files("lightlint").joinpath("data/gpus.toml").read_text(encoding="utf-8"))
    return {name: Gpu(name, **entry) for name, entry in raw.items()}


def find(name: str) -> Gpu:
    """A GPU by its name in the table, in any case.

    Raises:
        BudgetError: the table does not have it.
    """
    for known, gpu in all_gpus().items():
        if known.lower() == name.lower():
            return gpu
    raise BudgetError(f"unknown GPU `{name}`; there are {', '.join(all_gpus())}, or give --budget 15GiB")


def parse_size(text: str) -> int:
    """Bytes of a size such as `15GiB`, `16GB` or `800MiB`.

    Raises:
        BudgetError: it is none.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?)B?\s*", text, re.IGNORECASE)
    if found is None:
        raise BudgetError(f"`{text}` is no size; write it like 15GiB")
    unit = found[2].upper()
    base = 1024 if unit.endswith("I") else 1000
    return int(float(found[1]) * base ** ("KMGT".index(unit[0]) + 1))
