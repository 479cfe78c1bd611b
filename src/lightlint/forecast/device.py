"""Lets a program that asks for CUDA go on where there is none: the simulation needs no device, only the program's path."""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class OnCpu(TorchFunctionMode):  # type: ignore[misc]  # torch is no dependency, its classes have no type here
    """Gives every function that is asked for a CUDA device the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "cuda":
            return args[0]
        if name == "pin_memory":
            return args[0]
        return func(*map(_there, args), **{key: _there(value) for key, value in (kwargs or {}).items()})


def _there(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value


def pretend() -> None:
    """Switch it on for the rest of the process; autocast and scalers follow. Nothing is done where CUDA is there."""
    if torch.cuda.is_available():
        return
    torch.nn.Module.cuda = lambda self, device=None: self
    _autocast()
    OnCpu().__enter__()


def _autocast() -> None:
    """`autocast("cuda")` as the CPU's: the dtypes are the same, which is what memory depends on."""
    construct = torch.autocast.__init__

    @wraps(construct)
    def __init__(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.float16
        construct(self, device_type, dtype, *args, **kwargs)

    torch.autocast.__init__ = __init__
    plain = torch.nn.functional.dropout

    @wraps(plain)
    def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        """CUDA's dropout keeps a mask of one byte an element, the CPU's one of the input's own type."""
        if training and 0 < p < 1 and not inplace and input.is_floating_point():
            return torch.ops.aten.native_dropout(input, p, True)[0]
        return plain(input, p, training, inplace)

    torch.nn.functional.dropout = dropout
