"""What a simulated step takes, as plain data that is written by the simulation and read by every report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MIB = 2**20
VARIABLE = "LIGHTLINT_FORECAST"  # environment variable: what to simulate, as JSON
RESULT = "forecast.json"  # the file beside the records that the simulation writes
MEASURED = "measured.json"  # the file that a measured run writes there


class Kind(StrEnum):
    """What memory is for."""

    PARAMETERS = "parameters"
    BUFFERS = "buffers"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer state"
    BATCH = "batch"
    ACTIVATIONS = "activations"  # what forward keeps for backward, and what is made and dropped on the way


@dataclass(frozen=True, slots=True)
class Step:
    """The peak of one simulated step.

    Attributes:
        label: what was simulated.
        batch: samples in it, None where the batch has no such dimension.
        peak: bytes of all tensors at the peak, each rounded up as the CUDA allocator does.
        kinds: bytes at the peak by `Kind`.
        modules: bytes of activations at the peak by the module that made them.
        gradients: bytes of all gradients at the optimizers' step; at the peak not all of them need be there.
    """

    label: str
    batch: int | None
    peak: int
    kinds: Mapping[str, int] = field(default_factory=dict)
    modules: Mapping[str, int] = field(default_factory=dict)
    gradients: int = 0


@dataclass(frozen=True, slots=True)
class Simulation:
    """All steps of a simulation, and why it went no further.

    Attributes:
        problem: what could not be simulated, with the user's line; empty where all went well.
        seconds: time the simulated steps took.
        device: where a step itself failed, the GPU that it can be measured on, empty if there is none; else None.
    """

    steps: tuple[Step, ...]
    problem: str = ""
    seconds: float = 0.0
    device: str | None = None

    def step(self, label: str) -> Step | None:
        """The last step of a label."""
        return next((step for step in reversed(self.steps) if step.label == label), None)


@dataclass(frozen=True, slots=True)
class Measured:
    """The peak of a step that ran for real, on a GPU.

    Attributes:
        device: the GPU.
        allocated: bytes, as `torch.cuda.max_memory_allocated` says.
        reserved: bytes, as `torch.cuda.max_memory_reserved` says.
        kinds: bytes by `Kind` of what outlives a step; the rest is gradients, activations and workspace.
        batch: samples in it, None where the batch has no such dimension.
    """

    device: str
    allocated: int
    reserved: int
    kinds: Mapping[str, int] = field(default_factory=dict)
    batch: int | None = None


def read(raw: Mapping[str, Any]) -> Simulation:
    """A simulation as it wrote itself."""
    return Simulation(tuple(Step(**step) for step in raw["steps"]), raw["problem"], raw["seconds"], raw["device"])
