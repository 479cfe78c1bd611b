"""The answer to where a value comes from."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

DEPTH = 8  # steps after which a search for origins gives up
# methods of modules and tensors that give the object itself, or the same moved
SAME_OBJECT = {"to", "cuda", "cpu", "train", "eval", "half", "float", "double", "bfloat16", "requires_grad_"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from: the canonical class (or function) name, and the call that made it where one is in sight."""

    name: str
    call: cst.Call | None = None


def keeps_object(value: cst.CSTNode | None) -> bool:
    """Whether a value is what a method gives that hands its object on: `net.to(device)`."""
    return (
        isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value in SAME_OBJECT
    )
