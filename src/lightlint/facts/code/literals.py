"""The values of expressions of constants, read with `ast`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from lightlint.facts.code.unknown import UNKNOWN


def constant(node: ast.expr | None) -> object:
    """What an expression of constants comes to; as `ast.literal_eval`, each call of which leaves circles to be collected."""
    match node:
        case ast.Constant():
            return node.value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List() | ast.Tuple() | ast.Set():
            values = [constant(each) for each in node.elts]
            if any(value is UNKNOWN for value in values):
                return UNKNOWN
            return (
                values if isinstance(node, ast.List) else _made(tuple if isinstance(node, ast.Tuple) else set, values)
            )
        case ast.Dict():
            pairs = [(constant(key), constant(value)) for key, value in zip(node.keys, node.values, strict=True)]
            return UNKNOWN if any(part is UNKNOWN for pair in pairs for part in pair) else _made(dict, pairs)
    return UNKNOWN


def with_cuda(node: ast.expr) -> object:
    """What an argument comes to where CUDA is there: `1 if torch.cuda.is_available() else None`, `min(1, ...)`."""
    match node:
        case ast.IfExp(test=ast.Call(func=ast.Attribute(attr="is_available"))):
            return with_cuda(node.body)
        case ast.IfExp():
            one, other = with_cuda(node.body), with_cuda(node.orelse)
            return one or other if all(each is None or each in (0, 1) for each in (one, other)) else UNKNOWN
        case ast.Call(func=ast.Name(id="int"), args=[ast.Call(func=ast.Attribute(attr="is_available"))]):
            return 1
        case ast.Call(func=ast.Name(id="min"), args=[ast.Constant(value=1), _] | [_, ast.Constant(value=1)]):
            return 1
    return constant(node)


def _made(kind: Callable[[Any], object], parts: Sequence[object]) -> object:
    try:
        return kind(parts)
    except TypeError:  # what cannot be hashed in a set or as a key
        return UNKNOWN
