"""Angles between vectors of length 1: the cosine, its square, and the functions without a gradient where it is 1 or -1."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import PoleReached
from lightlint.engine.machine import Machine
from lightlint.values.core import Value, is_constant, number_of
from lightlint.values.training import Graph, Tensor

UNIT, PRODUCTS, COSINE, SQUARE, REST = (
    "vectors of length 1",
    "products",
    "cosine",
    "cosine squared",
    "1 - cosine squared",
)
_PRODUCTS = frozenset(["linear", "matmul", "mm", "bmm"])
_BOUNDING = frozenset(["clamp", "clip", "clamp_min", "relu", "abs"])


def note(machine: Machine, made: Value, name: str, given: Arguments, node: ast.AST) -> None:
    """Note what a function or method makes of an angle, its tensor the first argument."""
    source, second = given.get(0, "input"), given.get(1, "other")
    if name == "einsum":
        source, second = given.get(1, "operands"), given.get(2, "operands")
    if not isinstance(made, Tensor) or not isinstance(source, Tensor):
        return
    other = second if isinstance(second, Tensor) else None
    if name == "normalize":
        made.angle = UNIT if is_constant(given.get(1, "p"), 2, 2.0) or given.get(1, "p") is None else ""
    elif name in _PRODUCTS or name == "einsum":
        weight = other if other is not None else given.keywords.get("weight")
        made.angle = COSINE if source.angle == UNIT == getattr(weight, "angle", "") else ""
    elif name in ("norm", "vector_norm"):
        made.norm_of = source
    elif name == "cosine_similarity" or (name == "sum" and source.angle == PRODUCTS and len(given.values()) > 1):
        made.angle = COSINE
    elif name in ("square", "pow") and source.angle == COSINE:
        made.angle = SQUARE if name == "square" or is_constant(second, 2, 2.0) else ""
    elif name in _BOUNDING:
        made.angle = source.angle if _reaches_pole(name, source.angle, given) else ""
    elif name in ("sqrt", "acos", "arccos"):
        _ask(machine, name, source, made, node)


def combined(machine: Machine, made: Tensor, symbol: str, left: Value, right: Value, node: ast.AST) -> None:
    """Note what an operator makes of angles."""
    one, other = (each.angle if isinstance(each, Tensor) else "" for each in (left, right))
    if symbol == "/" and isinstance(left, Tensor) and isinstance(right, Tensor) and right.norm_of is left:
        made.angle = UNIT
    elif symbol == "@" and one == other == UNIT:
        made.angle = COSINE
    elif symbol == "*" and one == other == UNIT:
        made.angle = PRODUCTS
    elif one == COSINE and ((symbol == "*" and left is right) or (symbol == "**" and is_constant(right, 2, 2.0))):
        made.angle = SQUARE
    elif symbol == "-" and other == SQUARE and is_constant(left, 1, 1.0):
        made.angle = REST
    elif symbol == "**" and is_constant(right, 0.5) and isinstance(left, Tensor):
        _ask(machine, "sqrt", left, made, node)


def _reaches_pole(name: str, angle: str, given: Arguments) -> bool:
    """Whether bounds leave 1 and -1 to a cosine, and 0 to 1 - cos²."""
    low, high = given.get(1, "min"), given.get(2, "max")
    if angle == REST:
        return name in ("relu", "abs") or (number_of(low) is not None and (number_of(low) or 0) <= 0)
    if angle != COSINE or name in ("relu", "abs"):
        return False
    lowest, highest = (number_of(each) for each in (low, high))
    return lowest is not None and highest is not None and lowest <= -1 and highest >= 1


def _ask(machine: Machine, name: str, source: Tensor, made: Tensor, node: ast.AST) -> None:
    pole = REST if name == "sqrt" else COSINE
    if source.angle == pole and source.requires_grad and machine.grad[-1]:
        use = Graph(machine.site(node), machine.clock, None)
        made.graph |= {use}
        machine.emit(PoleReached(machine.where(node), name, use))
