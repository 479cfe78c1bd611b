"""Memory of the process and of its GPUs around a finding's lines: what is held, and the peak in between, in MiB.

The kernel keeps one peak for a process and torch one for a GPU; each look takes it for all who wait for it and resets it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.meters.process import driver

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MIB = 1 << 20
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_ROWS = re.compile(r"^(VmRSS|VmHWM):\s+(\d+) kB", re.MULTILINE)


def install(session: Session) -> None:
    """Compare memory around the findings' lines."""
    session.snapshots["memory"] = lambda frame: {
        **held(),
        **{f"cuda:{device} by the driver": driver.held_on(device, cuda) for device, cuda in _gpus()},
        **{f"{name} peak": value for name, value in PEAKS.take("lines").items()},
        "gradients": round(_gradients(frame), 6),
        "cuda started": has_started(),
    }


def has_started() -> bool:
    """Whether the program uses a GPU; to ask starts no driver."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and hasattr(cuda, "is_initialized") and bool(cuda.is_initialized())


def held() -> dict[str, float]:
    """What the process holds now: `process` on the CPU, `cuda:N` in torch's allocator for each GPU it has touched."""
    found = {"process": _kernel().get("VmRSS", 0.0)}
    for device, cuda in _gpus():
        found[f"cuda:{device}"] = round(cuda.memory_allocated(device) / _MIB, 3)
    return found


def _kernel() -> dict[str, float]:
    if not _STATUS.exists():
        return {}
    return {name: int(size) / 1024 for name, size in _ROWS.findall(_STATUS.read_text())}


def _gpus() -> Iterator[tuple[int, Any]]:
    """The GPUs on which this process has a context: to ask about another one would make it."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if torch is None or cuda is None or not has_started():  # `is_available` would start the driver
        return
    has_context = getattr(torch._C, "_cuda_hasPrimaryContext", lambda device: device == cuda.current_device())
    for device in range(cuda.device_count()):
        if has_context(device):
            yield device, cuda


class _Peaks:
    """Peaks since the last look, for several who look at different times."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, float]] = {}

    def take(self, reader: str) -> Mapping[str, float]:
        """The peaks since this reader's last call."""
        now = {"process": _kernel().get("VmHWM", 0.0)}
        now |= {f"cuda:{device}": cuda.max_memory_allocated(device) / _MIB for device, cuda in _gpus()}
        self._waiting.setdefault(reader, {})
        for peaks in self._waiting.values():
            for name, value in now.items():
                peaks[name] = max(peaks.get(name, 0.0), value)
        taken, self._waiting[reader] = self._waiting[reader], {}
        for device, cuda in _gpus():
            cuda.reset_peak_memory_stats(device)
        if _RESET.exists():
            _RESET.write_text("5")
        return {name: round(value, 3) for name, value in taken.items()}


PEAKS = _Peaks()  # a process has one peak


def _gradients(frame: FrameType) -> float:
    """MiB in the gradients of the optimizers and modules that the frame names."""
    seen: dict[int, int] = {}
    this = frame.f_locals.get("self")
    for value in [*frame.f_locals.values(), *getattr(this, "__dict__", {}).values(), this]:
        for parameter in _parameters(value):
            grad = getattr(parameter, "grad", None)
            if grad is not None:
                seen[id(grad)] = grad.element_size() * grad.numel()
    return sum(seen.values()) / _MIB


def _parameters(value: Any) -> Iterator[Any]:
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "optim"):
        return
    if issubclass(type(value), torch.optim.Optimizer):
        for group in value.param_groups:
            yield from group["params"]
    elif issubclass(type(value), torch.nn.Module):
        yield from value.parameters()
