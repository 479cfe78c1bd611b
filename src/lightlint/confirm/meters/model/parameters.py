"""Checksums and version counts of the parameters: around each update, and around a finding's lines.

A tensor's version count rises with every operation that autograd sees; a write through `.data` leaves it as it is.
"""

from __future__ import annotations

import gc
import sys
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lightlint.confirm.meters.numbers import OPTIMIZERS, PARAMETERS, Numbers, is_module

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MOST_BYTES = 1 << 16  # of each tensor
_MOST_TENSORS = 2000
_MOST_IDLE = 12  # backward passes looked at while no optimizer has stepped


def install(session: Session) -> None:
    """Look around updates, at backward passes before the first one, and around the findings' lines."""
    meter = _Parameters(session)
    guard = session.guard("parameters")
    session.before_update.append(guard(meter.before))
    session.after_update.append(guard(meter.after))
    session.snapshots["parameters"] = meter.around
    session.on_import("parameters", "torch", lambda torch: _watch_backward(torch, guard(meter.idle)))
    session.on_import("parameters", "torch.optim.optimizer", lambda module: _know_optimizers(module))


def _watch_backward(torch: Any, look: Any) -> None:
    run = torch.autograd.backward

    def backward(*args: Any, **kwargs: Any) -> Any:
        result = run(*args, **kwargs)
        look()
        return result

    torch.autograd.backward = backward


def _know_optimizers(module: Any) -> None:
    construct = module.Optimizer.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        construct(self, *args, **kwargs)
        OPTIMIZERS.of(self)

    module.Optimizer.__init__ = __init__


class _Parameters:
    """Names the parameters once and takes their checksums."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._names: dict[int, str] = {}  # by the parameter's number
        self._named: Numbers = Numbers()  # optimizers whose parameters have names
        self._seen: set[int] = set()
        self._idle = 0
        self._stepped = False

    def before(self, optimizer: Any) -> None:
        self._tell("before", optimizer)

    def after(self, optimizer: Any) -> None:
        self._stepped = self._stepped or bool(self._of(optimizer))  # Lightning's stand-in for none holds nothing
        self._tell("after", optimizer)

    def idle(self) -> None:
        """Behind a backward pass: what all trainable leaves hold, as long as no optimizer has stepped."""
        if self._stepped or self._idle >= _MOST_IDLE:
            return
        self._idle += 1
        named = {name: each for name, each in _of_roots() if each.grad is not None}
        self._session.record.emit("parameters", when="backward", optimizer=None, **looked(named))

    def around(self, frame: Any) -> Mapping[str, Any]:
        """Checksum and version of each parameter that an optimizer holds or that hangs on a variable of the frame."""
        if "torch" not in sys.modules:
            return {}
        found: dict[int, tuple[str, Any]] = {}
        for _, optimizer in OPTIMIZERS.living():
            for name, each in self._of(optimizer).items():
                found.setdefault(id(each), (name, each))
        for variable, value in list(frame.f_locals.items()):
            if is_module(value):
                prefix = "" if variable == "self" else f"{variable}."
                for name, each in value.named_parameters():
                    found.setdefault(id(each), (prefix + name, each))
        seen = looked(dict(found.values()))
        return {name: [crc, seen["versions"].get(name)] for name, crc in seen["tensors"].items()}

    def _tell(self, when: str, optimizer: Any) -> None:
        self._session.record.emit(
            "parameters", when=when, optimizer=OPTIMIZERS.of(optimizer), **looked(self._of(optimizer))
        )

    def _of(self, optimizer: Any) -> dict[str, Any]:
        tensors = [each for group in optimizer.param_groups for each in group["params"]][:_MOST_TENSORS]
        if self._named.of(optimizer) not in self._seen:
            self._seen.add(self._named.of(optimizer))
            self._names |= {PARAMETERS.of(each): name for name, each in _of_roots()}
        named: dict[str, Any] = {}
        for position, each in enumerate(tensors):
            name = self._names.get(PARAMETERS.of(each), str(position))
            named[name if name not in named else f"{name}#{position}"] = each
        return named


def _of_roots() -> Iterator[tuple[str, Any]]:
    """Name and tensor of each parameter of the modules that no other module holds."""
    modules = [thing for thing in gc.get_objects() if is_module(thing) and "_modules" in vars(thing)]
    held = {id(child) for module in modules for child in module._modules.values()}
    for module in modules:
        if id(module) not in held:
            for name, each in module.named_parameters():
                yield name.removeprefix("module."), each  # DistributedDataParallel's own level


def looked(named: Mapping[str, Any]) -> dict[str, Any]:
    """The fields `tensors` (checksums) and `versions` of an event."""
    return {
        "tensors": checksums(named),
        "versions": {name: each._version for name, each in named.items() if not each.is_inference()},
    }


def checksums(named: Mapping[str, Any]) -> dict[str, str]:
    """A checksum of each tensor: of its first 64 KiB on the CPU; what lies on a GPU is summed there and read at once."""
    import torch

    found: dict[str, str] = {}
    sums: dict[str, Any] = {}
    for name, each in named.items():
        tensor = each.detach()
        if tensor.is_meta or tensor.layout is not torch.strided:
            continue
        flat = tensor.reshape(-1)[: max(1, _MOST_BYTES // tensor.element_size())].contiguous()
        if tensor.device.type == "cpu":
            found[name] = f"{zlib.crc32(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b''):08x}"
        else:
            sums[name] = _weighted(torch, flat)
    by_device: dict[Any, list[str]] = {}
    for name, each in sums.items():
        by_device.setdefault(each.device, []).append(name)
    for names in by_device.values():  # one transfer for each device
        values = torch.stack([sums[name] for name in names]).tolist()
        found |= {name: f"{value & 0xFFFFFFFF:08x}" for name, value in zip(names, values, strict=True)}
    return found


def _weighted(torch: Any, flat: Any) -> Any:
    """A sum of the bytes that depends on where they stand: `torch.hash_tensor` gives 0 for equal values."""
    content = flat.view(torch.uint8).to(torch.int64)
    return (content * (torch.arange(len(content), device=flat.device) * 2654435761 + 1)).sum()
