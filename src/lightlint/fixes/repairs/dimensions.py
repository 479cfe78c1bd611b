"""How many dimensions a tensor surely has, and which of them a softmax without `dim` takes."""

from __future__ import annotations

from itertools import takewhile

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.file import FileFacts

_DEPTH = 12
_FACTORIES = {f"torch.{name}" for name in ("rand", "randn", "zeros", "ones", "empty")}
_SHAPING = {"view", "reshape"}
_KEEPING_METHODS = {
    "abs", "clamp", "clone", "contiguous", "cpu", "cuda", "detach", "div", "double", "exp", "float", "half", "log", "long",
    "masked_fill", "mul", "permute", "pow", "relu", "sigmoid", "sqrt", "tanh", "to", "transpose", "type",
}  # fmt: skip
_KEEPING = {
    f"torch.{name}"
    for name in ("abs", "clamp", "cos", "exp", "log", "relu", "sigmoid", "sin", "sqrt", "tanh", "transpose")
} | {
    f"torch.nn.functional.{name}"
    for name in (
        "relu", "relu_", "leaky_relu", "elu", "gelu", "selu", "silu", "tanh", "sigmoid", "softplus", "dropout", "linear",
        "layer_norm", "batch_norm", "normalize", "max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d", "conv1d", "conv2d",
    )
}  # fmt: skip
_KEEPING_MODULES = {
    f"torch.nn.{name}"
    for name in (
        "Linear", "ReLU", "LeakyReLU", "ELU", "GELU", "SELU", "SiLU", "Tanh", "Sigmoid", "Softplus", "Dropout", "Identity",
        "BatchNorm1d", "BatchNorm2d", "LayerNorm", "Conv1d", "Conv2d", "MaxPool1d", "MaxPool2d", "AvgPool2d", "Dropout2d",
        "AdaptiveAvgPool2d", "LazyLinear",
    )
}  # fmt: skip


def picked(dimensions: int) -> int:
    """The dimension that torch takes where a softmax is given none."""
    return 0 if dimensions in {0, 1, 3} else 1


def dimensions_of(facts: FileFacts, value: cst.BaseExpression | None, depth: int = 0) -> int | None:
    """The number of a tensor's dimensions, None where the text leaves a doubt."""
    if depth > _DEPTH:
        return None
    match value:
        case cst.Name():
            bound = facts.reaching.bindings(value)
            found = {
                dimensions_of(facts, each.value, depth + 1) if each.kind is Kind.ASSIGN and not each.path else None
                for each in bound
            }
            return found.pop() if len(found) == 1 else None
        case cst.BinaryOperation(operator=cst.Add() | cst.Subtract() | cst.Multiply() | cst.Divide()):
            return _of_both(facts, value, depth + 1)
        case cst.UnaryOperation(operator=cst.Minus()):
            return dimensions_of(facts, value.expression, depth + 1)
        case cst.Call():
            return _of_call(facts, value, depth + 1)
    return None


def dimensions_before(facts: FileFacts, made: cst.Call) -> int | None:
    """The number of dimensions of what a module in a `Sequential` gets: known behind a plain `Flatten()`."""
    argument = facts.tree.parent(made)
    sequence = facts.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(sequence, cst.Call) or facts.names.call(sequence) != "torch.nn.Sequential":
        return None
    before = [each.value for each in takewhile(lambda each: each is not argument, sequence.args)]
    for each in reversed(before):
        name = facts.names.call(each)
        if name == "torch.nn.Flatten" and isinstance(each, cst.Call) and not each.args:
            return 2
        if name not in _KEEPING_MODULES:
            return None
    return None


def _of_both(facts: FileFacts, value: cst.BinaryOperation, depth: int) -> int | None:
    sides = (value.left, value.right)
    numbers = [isinstance(facts.names.constant(each), (int, float)) for each in sides]
    found = [0 if number else dimensions_of(facts, each, depth) for each, number in zip(sides, numbers, strict=True)]
    known = [each for each in found if each is not None]
    return max(known) if len(known) == 2 and not all(numbers) else None


def _of_call(facts: FileFacts, call: cst.Call, depth: int) -> int | None:
    names = facts.names
    name, method = names.of(call.func) or "", names.method(call)
    if names.has_star(call):
        return None
    first = call.args[0].value if call.args and call.args[0].keyword is None else None
    if name in _FACTORIES:
        return _sizes(facts, call)
    if name == "torch.mm":
        return 2
    if name == "torch.bmm":
        return 3
    if name == "torch.flatten":
        return _flattened(facts, [each.value for each in call.args[1:]])
    if name in _KEEPING:
        return dimensions_of(facts, first, depth)
    made = {origin.name for origin in facts.values.origins(call.func)}
    if name or made:
        return dimensions_of(facts, first, depth) if made and made <= _KEEPING_MODULES else None
    if not isinstance(call.func, cst.Attribute) or facts.hooks.callee(call) is not None:
        return None
    if method in _SHAPING:
        return _sizes(facts, call)
    if method == "flatten":
        return _flattened(facts, [each.value for each in call.args])
    before = dimensions_of(facts, call.func.value, depth)
    if method == "unsqueeze" and before is not None:
        return before + 1
    return before if method in _KEEPING_METHODS else None


def _sizes(facts: FileFacts, call: cst.Call) -> int | None:
    """How many sizes a call is given, one by one or as a display."""
    plain = [each.value for each in call.args if each.keyword is None]
    if len(plain) > 1:
        return len(plain)
    match plain:
        case [cst.Tuple(elements=elements) | cst.List(elements=elements)]:
            return None if any(isinstance(each, cst.StarredElement) for each in elements) else len(elements)
        case [one] if isinstance(facts.names.constant(one), int):
            return 1
    return None


def _flattened(facts: FileFacts, given: list[cst.BaseExpression]) -> int | None:
    """What `flatten` leaves: of all dimensions one, of those from the second on two."""
    match [facts.names.constant(each) for each in given]:
        case []:
            return 1
        case [1] | [1, -1]:
            return 2
    return None
