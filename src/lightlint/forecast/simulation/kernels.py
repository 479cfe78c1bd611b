"""What CUDA's kernels keep and take where the CPU's do otherwise: stand-ins with the same memory, which compute nothing.

Fake tensors on the CPU go through the CPU's operations. Each entry here differs in bytes, as measured on H100 and H200
with torch 2.11 (tests/benchmarks/forecast.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

_MIB = 2**20
_FLOAT32 = (
    *("layer_norm", "group_norm", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"),
    *("binary_cross_entropy_with_logits", "softplus", "exp", "log", "pow", "rsqrt", "reciprocal", "logsumexp"),
)  # functions that CUDA's autocast runs in float32 and the CPU's does not
_RESERVE = {"lstm": (6, -1), "gru": (7, -1), "rnn_tanh": (2, -1), "rnn_relu": (2, -1)}


def stand_in(name: str) -> Callable[..., Any] | None:
    """The stand-in for a function of torch, None where the CPU's takes as much."""
    return _STAND_INS.get(name)


def in_float32(name: str, args: Sequence[Any]) -> Sequence[Any]:
    """The arguments as CUDA's autocast hands them on."""
    if name not in _FLOAT32 or not torch.is_autocast_enabled("cpu"):
        return args
    return tuple(arg.float() if isinstance(arg, torch.Tensor) and arg.dtype in _HALF else arg for arg in args)


_HALF = (torch.float16, torch.bfloat16)


def _dropout(plain: Any, input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """CUDA keeps a mask of one byte an element, the CPU one of the input's own type."""
    if training and 0 < p < 1 and not inplace and input.is_floating_point():
        return torch.ops.aten.native_dropout(input, p, True)[0]
    return plain(input, p, training, inplace)


def _linear(plain: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """CUDA keeps a contiguous copy of an input that is not."""
    return plain(input if input.is_contiguous() else input.contiguous(), weight, bias)


def _attention(
    plain: Any,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    **_options: Any,
) -> Any:
    """The fused kernels keep their inputs, the result and a number a row; with a mask that learns, CUDA takes none of them."""
    if torch.is_autocast_enabled("cpu"):
        dtype = torch.get_autocast_dtype("cpu")
        query, key, value = (each.to(dtype) for each in (query, key, value))
    if attn_mask is None or not attn_mask.requires_grad:
        return _Attention.apply(query, key, value)
    factor = math.sqrt(scale or 1 / math.sqrt(query.shape[-1]))
    weights = torch.softmax((query * factor) @ (key * factor).transpose(-2, -1) + attn_mask, -1)
    if dropout_p:
        weights = torch.ops.aten.native_dropout(weights, dropout_p, True)[0]
    return weights @ value


class _Attention(torch.autograd.Function):  # type: ignore[misc]  # torch is no dependency, its classes have no type here
    """Fused attention: shapes (batch, heads, length, width)."""

    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, value: Any) -> Any:
        """The result, laid out as (batch, length, heads, width) in memory."""
        *outer, heads, length, _ = query.shape
        result = query.new_empty((*outer, length, heads, value.shape[-1])).transpose(-3, -2)
        rows = query.new_empty((*outer, heads, length), dtype=torch.float32)
        ctx.save_for_backward(query, key, value, result, rows)
        return result

    @staticmethod
    def backward(ctx: Any, *_gradients: Any) -> Any:
        """A gradient for each input."""
        query, key, value, *_ = ctx.saved_tensors
        return tuple(torch.empty_like(each) for each in (query, key, value))


def _recurrent(name: str) -> Callable[..., Any]:
    def run(plain: Any, *args: Any) -> Any:
        packed = isinstance(args[1], torch.Tensor) and not isinstance(args[3], bool)
        if packed:
            data, sizes, hidden, weights, _, layers, _, _, both = args
            steps, batch = len(sizes), int(data.shape[0]) // max(1, len(sizes)) or 1
            outer = tuple(data.shape[:1])
        else:
            data, hidden, weights, _, layers, _, _, both, batch_first = args
            steps, batch = (data.shape[1], data.shape[0]) if batch_first else data.shape[:2]
            outer = tuple(data.shape[:2])
        states = hidden if isinstance(hidden, tuple | list) else (hidden,)
        width = states[0].shape[-1]
        found = _Recurrent.apply(name, data, (layers, 2 if both else 1, steps * batch, width), outer, *states, *weights)
        return found

    return run


class _Recurrent(torch.autograd.Function):  # type: ignore[misc]
    """cuDNN's recurrent networks: the reserve that forward leaves for backward, and workspace while each runs.

    With a unit of steps x batch x directions x width elements, the reserve of n layers is 6n - 1 units (LSTM), 7n - 1
    (GRU) or 2n - 1 (plain); the workspace was 5 units and up to 87 MiB more.
    """

    @staticmethod
    def forward(ctx: Any, name: str, data: Any, sizes: Any, outer: Any, *tensors: Any) -> Any:
        layers, directions, rows, width = sizes
        unit = rows * directions * width
        factor, less = _RESERVE[name]
        reserve = data.new_empty(unit * (factor * layers + less))
        workspace = data.new_empty(_workspace(unit, data.element_size()))
        result = data.new_empty((*outer, directions * width))
        states = tuple(torch.empty_like(tensor) for tensor in tensors[: 2 if name == "lstm" else 1])
        ctx.save_for_backward(data, result, reserve, *tensors)
        ctx.unit = unit
        del workspace
        return (result, *states)

    @staticmethod
    def backward(ctx: Any, *_gradients: Any) -> Any:
        data, _, _, *tensors = ctx.saved_tensors
        workspace = data.new_empty(_workspace(ctx.unit, data.element_size()))
        found = (None, torch.empty_like(data), None, None, *(torch.empty_like(each) for each in tensors))
        del workspace
        return found


def _workspace(unit: int, size: int) -> int:
    return 5 * unit + min(7 * unit, 87 * _MIB // size)


_STAND_INS: dict[str, Callable[..., Any]] = {
    "dropout": _dropout,
    "linear": _linear,
    "scaled_dot_product_attention": _attention,
    **{name: _recurrent(name) for name in _RESERVE},
}
