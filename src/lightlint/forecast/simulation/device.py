"""Lets a program that asks for CUDA go on where there is none: the simulation needs no device, only the program's path."""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from lightlint.forecast.simulation.kernels import in_float32, stand_in

_INSIDE = ("dropout", "linear", "scaled_dot_product_attention")  # what `multi_head_attention_forward` calls


class OnCpu(TorchFunctionMode):  # type: ignore[misc]  # torch is no dependency, its classes have no type here
    """Gives every function that is asked for a CUDA device the CPU and, while simulating, CUDA's share of memory."""

    simulating = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in {"cuda", "pin_memory"}:
            return args[0]
        args, kwargs = tuple(map(_there, args)), {key: _there(value) for key, value in (kwargs or {}).items()}
        if not self.simulating:
            return func(*args, **kwargs)
        other = stand_in(name)
        args = tuple(in_float32(name, args))
        return other(func, *args, **kwargs) if other is not None else func(*args, **kwargs)


def _there(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value


def pretend() -> OnCpu | None:
    """Switch it on for the rest of the process; autocast follows. None where CUDA is there: nothing is to be done."""
    if torch.cuda.is_available():
        return None
    torch.nn.Module.cuda = lambda self, device=None: self
    construct = torch.autocast.__init__

    @wraps(construct)
    def __init__(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda":  # the dtypes are the same, which is what memory depends on
            device_type, dtype = "cpu", dtype or torch.float16
        construct(self, device_type, dtype, *args, **kwargs)

    torch.autocast.__init__ = __init__
    mode = OnCpu()
    for name in _INSIDE:
        setattr(torch.nn.functional, name, _patched(name, mode))
    run_backward = torch.autograd._engine_run_backward

    def backward(*args: Any, **kwargs: Any) -> Any:
        with mode:  # off while `backward` is handled, and checkpointing runs forward again in there
            return run_backward(*args, **kwargs)

    torch.autograd._engine_run_backward = backward
    mode.__enter__()
    return mode


def _patched(name: str, mode: OnCpu) -> Any:
    """A function with its stand-in, also where the mode does not see it: it is off inside the functions it handles."""
    plain, other = getattr(torch.nn.functional, name), stand_in(name)

    @wraps(plain)
    def function(*args: Any, **kwargs: Any) -> Any:
        return other(plain, *args, **kwargs) if mode.simulating and other is not None else plain(*args, **kwargs)

    return function
