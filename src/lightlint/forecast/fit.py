"""What a forecast comes to on a GPU: the workspace that libraries take, the largest batch that fits."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from lightlint.forecast.breakdown import MIB, Simulation, Step
from lightlint.forecast.gpus import Gpu

RESERVED = (
    1.02,
    1.30,
)  # reserved by the allocator / allocated: 13 of 15 programs on H200, torch 2.11; two of convolutions had 1.66 and 1.76
_HOPPER_WORKSPACE = 66 * MIB  # measured on H200: two cuBLAS handles, one for each direction, 32 MiB each
_WORKSPACE = 17 * MIB  # before Hopper: 2 x 8,519,680 bytes, cuBLAS's documented default `:4096:2:16:8`
_LAYERS = 3  # layers that make a list worth checkpointing
_IN_LIST = re.compile(r"(?P<path>(?:\w+\.)*?[A-Za-z_]\w*)\.(?P<layer>\d+|\w*[A-Za-z_]\d+)(?P<rest>\..+)?$")
_DDP = 1.0  # times the gradients: the reducer's buckets, gone with gradient_as_bucket_view=True


def workspace(gpu: Gpu | None) -> int:
    """Bytes that cuBLAS takes beside the tensors.

    32 MiB a handle on Hopper and later, 8.125 MiB before (https://docs.nvidia.com/cuda/cublas/ on CUBLAS_WORKSPACE_CONFIG,
    as torch sets it); measured 66 MiB on H200 with torch 2.11.
    """
    return _WORKSPACE if gpu is not None and gpu.capability < 9 else _HOPPER_WORKSPACE


def allocated(step: Step, gpu: Gpu | None) -> int:
    """What `torch.cuda.max_memory_allocated` will say."""
    return step.peak + workspace(gpu)


def reducer(step: Step) -> int:
    """What DDP adds."""
    return int(_DDP * step.gradients)


@dataclass(frozen=True, slots=True)
class Slope:
    """Peak bytes as a line over the batch size."""

    fixed: float
    each: float

    def at(self, size: int) -> float:
        return self.fixed + self.each * size


def slope(simulation: Simulation, budget: int | None = None) -> Slope | None:
    """The line through two simulated batch sizes, those around a budget where there are such; None where there are not two.

    The peak is the larger of several lines: of the optimizer's step for small batches, of backward for large ones.
    """
    points = {step.batch: step.peak for step in simulation.steps if step.batch and step.label not in {"first", "bf16"}}
    if len(points) < 2:
        return None
    below = sorted(size for size, peak in points.items() if budget is None or peak <= budget)
    above = sorted(points.keys() - set(below))
    nearest = [below[-1], above[0]] if below and above else below[-2:] or above[:2]
    one, two = sorted(nearest)
    each = (points[two] - points[one]) / (two - one)
    return Slope(points[one] - each * one, each)


def largest(simulation: Simulation, budget: int) -> int | None:
    """The largest batch whose peak stays within `budget` bytes; 0 where none does, None where it cannot be told."""
    line = slope(simulation, budget)
    if line is None or line.each <= 0:
        return None
    return max(0, int((budget - line.fixed) // line.each))


def is_near(step: Step, budget: int) -> bool:
    """Whether a simulated peak is near enough to a budget to call its batch the largest: 4 % below, nothing above."""
    return 0.96 * budget <= step.peak <= budget


@dataclass(frozen=True, slots=True)
class Blocks:
    """Layers of one list: its path, how many there are, and the bytes that checkpointing each of them would save."""

    path: str
    count: int
    saved: int


def checkpointed(step: Step) -> Blocks | None:
    """What checkpointing the layers of the list with most activations saves; None where no list has three.

    What stays is each layer's own result, which the next one begins with, and the activations of one layer at a time.
    """
    inside: Counter[str] = Counter()
    results: Counter[str] = Counter()
    layers: dict[str, set[str]] = {}
    for module, size in step.modules.items():
        found = _IN_LIST.match(module)
        if found is not None:
            path = found["path"]
            inside[path] += size
            layers.setdefault(path, set()).add(found["layer"])
            results[path] += 0 if found["rest"] else size
    path = max((path for path in layers if len(layers[path]) >= _LAYERS), key=lambda path: inside[path], default=None)
    if path is None:
        return None
    count = len(layers[path])
    saved = inside[path] - inside[path] // count - results[path]
    return Blocks(path, count, saved) if saved > 0 else None
