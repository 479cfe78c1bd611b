"""Which values surely are tensors: what torch's functions and layers give, and what is computed from it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.objects.type_tests import is_told
from lightlint.facts.tensors.criteria import Criteria
from lightlint.facts.tensors.results import Results
from lightlint.facts.tensors.tensors import FACTORIES
from lightlint.facts.values.containers import item_of

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_DEPTH = 8
# methods of tensors that give one tensor, whatever their arguments
_METHODS = {
    "abs", "argmax", "argmin", "bfloat16", "bool", "byte", "clamp", "clone", "contiguous", "cos", "cpu", "cuda", "detach",
    "double", "exp", "expand", "flatten", "float", "gather", "half", "index_select", "int", "log", "log_softmax", "long",
    "masked_fill", "matmul", "mean", "mul", "permute", "pow", "relu", "repeat", "reshape", "round", "short", "sigmoid",
    "sin", "softmax", "sqrt", "square", "squeeze", "sum",
    "tanh", "to", "transpose", "type", "unsqueeze", "view", "view_as",
}  # fmt: skip
# and those that give a pair of values and places when they are told a dimension
_PAIRS = {"max", "min", "sort", "topk", "median", "kthvalue", "mode"}
_FUNCTIONS = FACTORIES | {
    f"{room}.{name}"
    for room in ("torch", "torch.nn.functional", "torch.special")
    for name in (
        "abs", "bmm", "cat", "clamp", "conv1d", "conv2d", "cos", "cosine_similarity", "dropout", "einsum", "elu", "exp", "gelu",
        "interpolate", "leaky_relu", "linear", "log", "log_softmax", "logsigmoid", "logsumexp", "matmul", "mean", "mm",
        "normalize", "one_hot", "outer", "pad", "pow", "relu", "selu", "sigmoid", "silu", "sin", "softmax", "softplus", "sqrt",
        "square", "stack", "sum", "tanh", "unsqueeze", "where", "zeros_like", "ones_like", "randn_like", "rand_like",
    )
}  # fmt: skip
_LAYERS = re.compile(
    r"torch\.nn\.(?:Linear|Bilinear|(?:Lazy)?Conv\w+|\w*BatchNorm\w*|InstanceNorm\w+|LayerNorm|GroupNorm|Embedding|\w*ReLU\d*|"
    r"[GSC]?ELU|GELU|SiLU|Mish|Sigmoid|Tanh|Softmax|LogSoftmax|Softplus|Dropout\w*|Flatten|Identity|AdaptiveAvgPool\w+|"
    r"AvgPool\w+|Upsample|Pixel\w+|TransformerEncoder|TransformerEncoderLayer)$"
)
_RECURRENT = {"torch.nn.GRU": ((0,), (1,)), "torch.nn.RNN": ((0,), (1,)), "torch.nn.LSTM": ((0,), (1, 0), (1, 1))}


class Computed:
    """Tensors that the code of one file computes; what is out of sight is none."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._names = facts.names

    def is_tensor(self, expression: cst.BaseExpression | None, path: tuple[int, ...] = (), depth: int = 0) -> bool:
        """Whether a value, or the part of it at `path`, surely is a tensor."""
        if expression is None or depth > _DEPTH:
            return False
        match expression:
            case cst.Name():
                found = self._facts.reaching.bindings(expression)
                known = bool(found) and all(self._binds(each, path, depth + 1) for each in found)
                return known or (not path and is_told(self._facts, expression))
            case cst.Call():
                return self._is_given(expression, path, depth)
            case cst.Tuple() | cst.List() if path:
                return self.is_tensor(item_of(expression, path[0]), path[1:], depth + 1)
            case cst.Subscript() if not path:
                return self._is_item(expression, depth)
            case cst.Attribute(attr=cst.Name(value="values" | "indices")) if not path:
                return self._is_pair(expression.value, depth)
            case cst.BinaryOperation() if not path:
                return any(self.is_tensor(each, (), depth + 1) for each in (expression.left, expression.right))
            case cst.UnaryOperation(operator=cst.Minus()) if not path:
                return self.is_tensor(expression.expression, (), depth + 1)
            case cst.IfExp():
                return all(self.is_tensor(each, path, depth + 1) for each in (expression.body, expression.orelse))
        return False

    def _binds(self, binding: Binding, path: tuple[int, ...], depth: int) -> bool:
        return binding.kind is Kind.ASSIGN and self.is_tensor(binding.value, (*binding.path, *path), depth)

    def _is_item(self, item: cst.Subscript, depth: int) -> bool:
        """`rows[0]` of a tensor, and `pair[0]` of `values.max(1)`."""
        index = item.slice[0].slice if len(item.slice) == 1 else None
        place = self._names.constant(index.value) if isinstance(index, cst.Index) else None
        part = isinstance(place, int) and self.is_tensor(item.value, (place,), depth + 1)
        return part or self.is_tensor(item.value, (), depth + 1)

    def _is_pair(self, call: cst.BaseExpression, depth: int) -> bool:
        """Whether a call gives a pair of tensors, as `values.max(dim=1)`."""
        if (
            not isinstance(call, cst.Call)
            or self._names.method(call) not in _PAIRS
            or not isinstance(call.func, cst.Attribute)
        ):
            return False
        if (self._names.of(call.func) or "").startswith("torch."):
            return len(call.args) > 1 and self.is_tensor(call.args[0].value, (), depth + 1)
        return bool(call.args) and self.is_tensor(call.func.value, (), depth + 1)

    def _is_given(self, call: cst.Call, path: tuple[int, ...], depth: int) -> bool:
        """Whether a call gives a tensor, by its function, by its method or by the module it runs."""
        if path:
            return (len(path) == 1 and path[0] in (0, 1) and self._is_pair(call, depth)) or self._is_run(
                call, path, depth
            )
        name = self._names.of(call.func) or ""
        if name in _FUNCTIONS or self._facts.fact(Criteria).of(call) is not None:
            return all(arg.keyword is None or arg.keyword.value != "out" for arg in call.args)
        if isinstance(call.func, cst.Attribute) and not name and call.func.attr.value in _METHODS:
            return self.is_tensor(call.func.value, (), depth + 1)
        return self._is_run(call, path, depth)

    def _is_run(self, call: cst.Call, path: tuple[int, ...], depth: int) -> bool:
        """Whether a module, or a function of this file, gives a tensor."""
        functions = self._facts.fact(Results).functions(call)
        if functions:
            plain = not any(each.decorators for each in functions)
            returns = [value for each in functions for value in self._facts.values.returns(each)]
            return plain and bool(returns) and all(self.is_tensor(each, path, depth + 2) for each in returns)
        if isinstance(call.func, (cst.Name, cst.Attribute)) and self._facts.hooks.callee(call) is None:
            origins = self._facts.values.origins(call.func)
            return bool(origins) and all(self._is_layer(each.name, each.call, path) for each in origins)
        return False

    def _is_layer(self, name: str, made: cst.Call | None, path: tuple[int, ...]) -> bool:
        if path or made is None:
            return made is not None and path in _RECURRENT.get(name, ())
        if name == "torch.nn.Sequential":
            inner = [self._names.call(arg.value) or "" for arg in made.args if not arg.star]
            return bool(inner) and bool(_LAYERS.match(inner[-1])) and not made.args[-1].star
        return bool(_LAYERS.match(name)) or (name.startswith("torch.nn.") and name.endswith("Loss"))
