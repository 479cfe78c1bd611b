"""Counts the bytes of tensors while fake ones run through a training step: what is alive, what for, and the peak."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lightlint.forecast.breakdown import Kind
from lightlint.forecast.simulation.faking import constant

_ROUND = 512  # bytes: the CUDA allocator's smallest block


class Tracker(TorchDispatchMode):  # type: ignore[misc]  # torch is no dependency, its classes have no type here
    """Sees every operation; a storage counts from the operation that made it until the last reference is gone.

    Asked for a value (`.item()`, `bool(tensor)`), it answers with a constant: fake tensors have none.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[int, Kind] = {}  # by storage
        self._modules: dict[int, str] = {}
        self._sizes: dict[int, int] = {}
        self._references: dict[int, Any] = {}
        self._live: Counter[tuple[Kind, str]] = Counter()
        self._total = 0
        self.module = ""  # the module whose forward runs just now
        self.peak = 0
        self._at_peak: Mapping[tuple[Kind, str], int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            return constant(args[0].dtype)
        func = _SIZED.get(func, func)
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.see(leaf, Kind.ACTIVATIONS)
        return result

    def see(self, tensor: torch.Tensor, kind: Kind) -> None:
        """Count a tensor's storage, if it is new."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._sizes:
            return
        size = -(-storage.nbytes() // _ROUND) * _ROUND
        self._sizes[key], self._kinds[key], self._modules[key] = size, kind, self.module
        self._references[key] = weakref.ref(storage, lambda _: self._gone(key))
        self._add(key, size)

    def rename(self, tensors: Iterable[torch.Tensor], kind: Kind) -> None:
        """Say what tensors are for, once that is known: gradients and optimizer state begin as results of operations."""
        for tensor in tensors:
            self.see(tensor, kind)
            key = tensor.untyped_storage()._cdata
            if self._kinds[key] is not kind:
                size = self._sizes[key]
                self._live[self._kinds[key], self._modules[key]] -= size
                self._kinds[key], self._modules[key] = kind, ""
                self._live[kind, ""] += size

    def start(self) -> None:
        """Begin to look for a new peak."""
        self.peak = self._total
        self._at_peak = dict(self._live)

    def kinds(self) -> dict[str, int]:
        """Bytes by kind at the peak."""
        found: Counter[str] = Counter()
        for (kind, _), size in self._at_peak.items():
            found[kind.value] += size
        return {kind: size for kind, size in found.items() if size}

    def modules(self) -> dict[str, int]:
        """Bytes of activations by module at the peak, the most first."""
        found = {module: size for (kind, module), size in self._at_peak.items() if kind is Kind.ACTIVATIONS and size}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def _add(self, key: int, size: int) -> None:
        self._total += size
        self._live[self._kinds[key], self._modules[key]] += size
        if self._total > self.peak:
            self.peak = self._total
            self._at_peak = dict(self._live)

    def _gone(self, key: int) -> None:
        size = self._sizes.pop(key, 0)
        self._total -= size
        kind, module = self._kinds.pop(key, Kind.ACTIVATIONS), self._modules.pop(key, "")
        self._live[kind, module] -= size
        self._references.pop(key, None)


def _unique(values: torch.Tensor, _sorted: bool = True, inverse: bool = False, counts: bool = False) -> Any:
    """As if all values were equal: metrics look whether there are more than classes."""
    flat = values.new_empty(min(1, values.numel()))
    return (
        flat,
        torch.empty_like(values, dtype=torch.int64) if inverse else flat.new_empty(0, dtype=torch.int64),
        torch.empty_like(flat, dtype=torch.int64) if counts else flat.new_empty(0, dtype=torch.int64),
    )


def _bincount(values: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0) -> torch.Tensor:
    return values.new_empty(max(minlength, 1), dtype=torch.int64 if weights is None else weights.dtype)


# Operations whose result is of a size that depends on values, where one is found that most programs go on with.
_SIZED: Mapping[Any, Any] = {torch.ops.aten._unique2.default: _unique, torch.ops.aten.bincount.default: _bincount}
