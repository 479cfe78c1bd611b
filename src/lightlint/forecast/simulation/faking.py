"""Turns a program's modules and optimizers into ones that hold no memory, in place."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_map


def fake_mode() -> FakeTensorMode:
    """The mode that the simulation runs under; real tensors that the program still holds are taken as fake ones."""
    FakeTensor.__format__, FakeTensor.numpy, FakeTensor.tolist = _format, _numpy, _tolist
    FakeTensor.__deepcopy__ = _deepcopy
    return FakeTensorMode(allow_non_fake_inputs=True)


def constant(dtype: torch.dtype) -> float | int | bool:
    """A value that most programs go on with: nothing is true (no NaN, no overflow), numbers are one."""
    if dtype is torch.bool:
        return False
    return 1.0 if dtype.is_floating_point else 1


def _format(tensor: torch.Tensor, form: str) -> str:
    return format(constant(tensor.dtype), form) if tensor.dim() == 0 else object.__format__(tensor, form)


def _numpy(tensor: torch.Tensor, **_options: Any) -> Any:
    import numpy

    dtype = str(tensor.dtype).removeprefix("torch.").replace("bfloat16", "float32")  # tried where the program does not
    return numpy.full(tuple(tensor.shape), constant(tensor.dtype), dtype)


def _tolist(tensor: torch.Tensor) -> Any:
    return _numpy(tensor).tolist()


def alive(kind: type) -> list[Any]:
    """The living objects of a class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lazy modules warn when they are looked at
        return [each for each in gc.get_objects() if isinstance(each, kind)]


def _deepcopy(tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    """What torch's own does by way of storages, which fake tensors do not share out."""
    if id(tensor) not in memo:
        copy = tensor.detach().clone()
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        memo[id(tensor)] = (
            torch.nn.Parameter(copy, tensor.requires_grad)
            if is_parameter
            else copy.requires_grad_(tensor.requires_grad)
        )
    return memo[id(tensor)]


def optimizers() -> list[torch.optim.Optimizer]:
    """The living optimizers, without Lightning's wrappers, which are optimizers of the same groups."""
    return list({id(each.param_groups): each for each in alive(torch.optim.Optimizer)}.values())


class Faker:
    """Replaces real tensors by fake ones, the same by the same."""

    def __init__(self, mode: FakeTensorMode) -> None:
        self._mode = mode
        self._known: dict[int, torch.Tensor] = {}
        self._kept: list[torch.Tensor] = []  # an id is good only while its object lives

    def modules(self) -> list[torch.nn.Module]:
        """Replace parameters and buffers of every module, and return the modules."""
        found = alive(torch.nn.Module)
        for module in found:
            for name, parameter in module.__dict__.get("_parameters", {}).items():
                if parameter is not None:
                    module._parameters[name] = self._parameter(parameter)
            for name, buffer in module.__dict__.get("_buffers", {}).items():
                if buffer is not None:
                    module._buffers[name] = self.tensor(buffer)
        return found

    def optimizers(self) -> list[torch.optim.Optimizer]:
        """Give every optimizer the fake parameters, and the implementation that it takes on a GPU."""
        found = optimizers()
        for optimizer in found:
            for group in optimizer.param_groups:
                group["params"] = [self._parameter(parameter) for parameter in group["params"]]
                if group.get("foreach", True) is None and not group.get("fused"):
                    group["foreach"] = True  # torch's default on CUDA; on the CPU it is the loop over parameters
            state = {self._parameter(key): tree_map(self._leaf, value) for key, value in optimizer.state.items()}
            optimizer.state.clear()
            optimizer.state.update(state)
        return found

    def batch(self, batch: Any, size: int | None = None) -> Any:
        """A fake batch like a real one; with `size` samples where a tensor's first dimension counts samples."""
        real = samples(batch)

        def leaf(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            fake = self._mode.from_tensor(value)
            if size is None or value.dim() == 0 or value.shape[0] != real:
                return fake
            with self._mode:
                return fake.new_empty((size, *value.shape[1:]))

        return tree_map(leaf, batch)

    def tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in self._known:
            self._known[id(tensor)] = fake = self._mode.from_tensor(tensor)
            self._known[id(fake)] = fake
            self._kept += [tensor, fake]
        return self._known[id(tensor)]

    def _parameter(self, parameter: torch.Tensor) -> Any:
        if id(parameter) not in self._known:
            with self._mode:
                fake = torch.nn.Parameter(self._mode.from_tensor(parameter.detach()), parameter.requires_grad)
            self._known[id(parameter)] = self._known[id(fake)] = fake
            self._kept += [parameter, fake]
        return self._known[id(parameter)]

    def _leaf(self, value: Any) -> Any:
        return self.tensor(value) if isinstance(value, torch.Tensor) else value


def samples(batch: Any) -> int | None:
    """The size of a batch: the first dimension of its first tensor."""
    return next((leaf.shape[0] for leaf in tensors(batch) if leaf.dim()), None)


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a batch of dictionaries, lists, tuples and data classes."""
    from torch.utils._pytree import tree_leaves

    for leaf in tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            yield leaf


def watch_modules(modules: Iterable[torch.nn.Module], enter: Callable[[str], None], leave: Callable[[], None]) -> None:
    """Call `enter` with a module's path when its forward begins, `leave` when it ends."""
    names: dict[int, str] = {}
    for module in modules:
        for name, inner in module.named_modules():
            if len(name) >= len(names.get(id(inner), "")):
                names[id(inner)] = name or type(inner).__name__

    def before(module: torch.nn.Module, _args: Any) -> None:
        enter(names.get(id(module), type(module).__name__))

    def after(_module: torch.nn.Module, _args: Any, _result: Any) -> None:
        leave()

    torch.nn.modules.module.register_module_forward_pre_hook(before)
    torch.nn.modules.module.register_module_forward_hook(after, always_call=True)
