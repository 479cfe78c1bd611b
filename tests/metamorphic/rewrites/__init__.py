"""The rewrites by name. Each changes a program's trees in place, and leaves alone what it cannot change truly alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType

from ..program import Program

FAMILIES = (
    "values",
    "calls",
    "constants",
    "wraps",
    "branches",
    "moves",
    "loops",
    "variables",
    "imports",
    "annotations",
    "classes",
    "functions",
)


@dataclass(frozen=True)
class Rewrite:
    """`local`: it acts on single statements, so it can be asked to act on those with findings only."""

    name: str
    family: str
    example: str
    apply: Callable[[Program], None]
    local: bool


_ALL: dict[str, Rewrite] = {}


def rewrite(
    name: str, example: str, *, local: bool = True
) -> Callable[[Callable[[Program], None]], Callable[[Program], None]]:
    """Put a function among the rewrites."""

    def keep(apply: Callable[[Program], None]) -> Callable[[Program], None]:
        assert name not in _ALL
        _ALL[name] = Rewrite(name, apply.__module__.rpartition(".")[2], example, apply, local)
        return apply

    return keep


def rewrites() -> MappingProxyType[str, Rewrite]:
    for family in FAMILIES:
        import_module(f"{__name__}.{family}")
    return MappingProxyType(_ALL)
