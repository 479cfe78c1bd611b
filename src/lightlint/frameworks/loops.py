"""The loops over epochs and batches that Lightning runs itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from lightlint.engine.frames import Loop
from lightlint.engine.machine import Machine
from lightlint.values.core import Unknown, Value

INDEX = frozenset({"index", "count"})
"""The traits of the number of a batch or of an epoch."""


@contextmanager
def driven(machine: Machine, kind: str, bound: Value | None, node: ast.AST) -> Iterator[Loop]:
    """A loop of Lightning's own, open."""
    made = Loop(node, machine.site(node), kind, bound, None, False, driven=True)
    machine.loops.append(made)
    try:
        yield made
    finally:
        machine.loops.remove(made)


def batch_index(machine: Machine) -> Unknown:
    """`batch_idx`."""
    turns = tuple(loop.turn for loop in machine.loops)
    return Unknown(("batch_idx", turns), INDEX, plain=True, hint="batch_idx")
