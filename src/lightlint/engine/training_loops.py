"""Loops over something out of sight that turn out to train: what they go over are batches."""

from __future__ import annotations

import ast
import re

from lightlint.engine.machine import Machine
from lightlint.values.core import Unknown, Value
from lightlint.values.training import Instance, Tensor

_NO_BATCH = re.compile(
    r"epoch|step|iter(?!able)|round|fold|seed|trial|task|client|domain|episode|agent|player|model|net|head|expert|member"
    r"|config|param|lr|size|^_+$|^[tijkn]$",
    re.IGNORECASE,
)
"""What the variable of a loop is called that counts, or goes over things that each train."""


def note_backward(machine: Machine) -> None:
    """Gradients are computed in the innermost loop."""
    if machine.loops:
        machine.loops[-1].graded = True


def note_step(machine: Machine, optimizer: Value | None) -> None:
    """An optimizer steps: the innermost loop goes over batches if it computes gradients, and the optimizer is no turn's own."""
    loop = machine.loops[-1] if machine.loops else None
    if loop is None or loop.kind != "elements" or not loop.graded or not _holds_samples(loop.over):
        return
    own = isinstance(optimizer, Instance) and optimizer.made > loop.made
    if not own and not is_of_turn(getattr(optimizer, "key", None)) and _takes_samples(loop.node):
        loop.kind = "batch"


def _holds_samples(over: Value | None) -> bool:
    sampled = isinstance(over, Tensor) or (isinstance(over, Instance) and over.kind == "data set")
    return sampled or (isinstance(over, Unknown) and _NO_BATCH.search(over.hint) is None)


def is_of_turn(key: object) -> bool:
    """Whether something is an element that a loop goes over, or is looked up by its number."""
    return isinstance(key, tuple) and (key[:1] in (("element",), ("index",)) or any(map(is_of_turn, key)))


def _takes_samples(node: ast.AST | None) -> bool:
    """Whether a loop does something with what it goes over that may be a batch by its name."""
    if not isinstance(node, (ast.For, ast.AsyncFor)):
        return False
    names = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    names = {each for each in names if _NO_BATCH.search(each) is None}
    used = (each for part in node.body for each in ast.walk(part) if isinstance(each, ast.Name))
    return any(each.id in names and isinstance(each.ctx, ast.Load) for each in used)
