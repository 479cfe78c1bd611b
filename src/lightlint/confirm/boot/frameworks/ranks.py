"""`--devices N` inside the program: Trainer, Fabric and process group are made for N ranks of this machine.

Where it has fewer GPUs than ranks, the ranks rehearse on the CPU, over gloo instead of NCCL; a program that asks whether
there is CUDA is told that there is none, for its second rank would take a GPU that is not there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_FABRICS = ("lightning.fabric.fabric", "lightning_fabric.fabric")
_SPREADS = ("ddp", "fsdp", "deepspeed")  # strategies, by their names' beginning, that train on several ranks
_GPU_ONLY = ("fsdp", "deepspeed")


def install(session: Session) -> None:
    """Watch for Fabric and for the process group; a Trainer asks for `arguments` itself."""
    devices = session.plan.devices
    if devices is not None:
        if session.plan.falls_back:
            session.on_import("ranks", "torch", lambda module: _hide_gpus(devices))
        session.on_import("ranks", "torch.distributed", lambda module: _join_on_cpu(module, devices))
        for name in _FABRICS:
            session.on_import("ranks", name, lambda module: _watch_fabric(module, devices))


def arguments(devices: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a Trainer or Fabric that make it run on so many ranks; a strategy of several ranks stays."""
    changed: dict[str, Any] = {"devices": devices, "num_nodes": 1}
    on_cpu = not has_gpus(devices)
    if on_cpu:
        changed["accelerator"] = "cpu"
    strategy = given.get("strategy", "auto")
    name = (strategy if isinstance(strategy, str) else type(strategy).__name__).lower()
    keeps = name.startswith(_SPREADS) and "notebook" not in name and not (on_cpu and name.startswith(_GPU_ONLY))
    if not keeps:
        changed["strategy"] = "ddp" if devices > 1 else "auto"
    return changed


def has_gpus(devices: int) -> bool:
    """Whether each rank can have a GPU of its own; asked in the way that leaves CUDA uninitialised, for forks."""
    torch = sys.modules.get("torch")
    return torch is not None and int(torch.cuda.device_count()) >= devices


def _hide_gpus(devices: int) -> None:
    if not has_gpus(devices):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # read when CUDA starts


def _watch_fabric(module: ModuleType, devices: int) -> None:
    construct = module.Fabric.__init__

    @wraps(construct)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        construct(self, *args, **{**kwargs, **arguments(devices, kwargs)})

    module.Fabric.__init__ = __init__


def _join_on_cpu(distributed: ModuleType, devices: int) -> None:
    join = distributed.init_process_group

    @wraps(join)
    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not has_gpus(devices):
            backend = "gloo" if backend is None or "nccl" in str(backend) else backend
            kwargs.pop("device_id", None)
        return join(backend, *args, **kwargs)

    distributed.init_process_group = init_process_group  # type: ignore[attr-defined]
