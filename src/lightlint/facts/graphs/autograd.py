"""What is said of a value that carries an autograd graph, and the terms of a sum, each of which does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import libcst as cst

if TYPE_CHECKING:
    from lightlint.facts.code.names import Names

# methods whose result hangs on the graph of the tensor they are called on
KEEPING = {
    "abs", "clone", "contiguous", "cpu", "cuda", "double", "exp", "float", "half", "log", "mean", "mul", "neg", "norm",
    "pow", "reshape", "sqrt", "squeeze", "sum", "to", "unsqueeze", "view", "flatten", "log_softmax", "softmax", "sigmoid",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Graph:
    """A value that carries an autograd graph.

    `freed` says that a backward pass runs over it, which frees what the forward pass saved and leaves the nodes;
    `tensor` that the value surely is a tensor, `held` that it is a container of what carries the graph.
    """

    node: cst.BaseExpression
    freed: bool
    tensor: bool
    held: bool = False


class Recorded(Protocol):
    """What is known of where autograd records, as far as containers of losses ask for it; see `Gradients`."""

    def may_be_off(self, node: cst.CSTNode) -> bool: ...

    def graphs(self, expression: cst.BaseExpression | None, depth: int) -> list[Graph]: ...

    def terms(self, backward: cst.Call) -> list[cst.BaseExpression]: ...


def joined(node: cst.BaseExpression, graphs: Sequence[Graph]) -> Graph:
    """What a value carries that is one of several."""
    freed, tensor = all(each.freed for each in graphs), all(each.tensor for each in graphs)
    return Graph(node, freed, tensor, held=any(each.held for each in graphs))


def sum_terms(expression: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The terms of a sum, without constant factors and divisors; those of a scaled loss (`scaler.scale(a + b)`) too."""
    match expression:
        case cst.BinaryOperation(operator=cst.Add() | cst.Subtract()):
            yield from sum_terms(expression.left)
            yield from sum_terms(expression.right)
        case cst.BinaryOperation(operator=cst.Multiply(), left=cst.Integer() | cst.Float()):
            yield from sum_terms(expression.right)
        case cst.BinaryOperation(operator=cst.Divide()) | cst.BinaryOperation(right=cst.Integer() | cst.Float()):
            yield from sum_terms(expression.left)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="scale")), args=[scaled]):
            yield from sum_terms(scaled.value)
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))) if method in KEEPING:
            yield from sum_terms(receiver)
        case _:
            yield expression


def is_told_to_keep(names: Names, backward: cst.Call) -> bool:
    """Whether a backward pass is told something about keeping its graph; `retain_variables` was the word before torch 0.5."""
    return any(names.argument(backward, word) is not None for word in ("retain_graph", "retain_variables"))
