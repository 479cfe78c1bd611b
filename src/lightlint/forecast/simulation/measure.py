"""The part that runs inside the user's process where a step cannot be simulated: measures one on the GPU.

The program runs as it is until an optimizer has stepped three times, and every other at least once; what the allocator
held at most since its first time is the peak of a step, with the optimizer's state there.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.forecast.breakdown import MEASURED, Kind, Measured
from lightlint.forecast.simulation.watch import watch_trainers

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_STEPS = 3
_MOST_STEPS = 30  # of one optimizer, while another never steps


def install(session: Session) -> None:
    """Wait for the optimizers' steps."""
    measurement = _Measurement(Path(session.plan.records))
    session.on_import("measure", "torch", lambda torch: measurement.watch())
    session.on_import("measure", "torch.utils.data.dataloader", measurement.note_batches)
    for package in ("pytorch_lightning", "lightning.pytorch"):
        session.on_import("measure", f"{package}.trainer.trainer", watch_trainers)


class _Measurement:
    """How often each optimizer has stepped."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / MEASURED
        self._stepped: Counter[int] = Counter()
        self._batch: int | None = None

    def watch(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(lambda optimizer, _args, _kwargs: self._took_step(optimizer))

    def note_batches(self, module: ModuleType) -> None:
        """Remember how many samples the batches have that training draws."""
        iterate = module.DataLoader.__iter__

        def __iter__(loader: Any) -> Iterator[Any]:
            import torch

            from lightlint.forecast.simulation.faking import samples

            for batch in iterate(loader):
                if torch.is_grad_enabled():
                    self._batch = samples(batch)
                yield batch

        module.DataLoader.__iter__ = __iter__

    def _took_step(self, optimizer: Any) -> None:
        import torch

        from lightlint.forecast.simulation.faking import optimizers

        self._stepped[id(optimizer.param_groups)] += 1
        count = max(self._stepped.values())
        if self._stepped.total() == 1:
            torch.cuda.reset_peak_memory_stats()
        elif count > 1:
            self._write()  # also where the program ends before the third
        if count >= _STEPS and (len(self._stepped) >= len(optimizers()) or count >= _MOST_STEPS):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    def _write(self) -> None:
        import torch

        name, peak = torch.cuda.get_device_name(), torch.cuda.max_memory_allocated()
        found = Measured(name, peak, torch.cuda.max_memory_reserved(), _kinds(), self._batch)
        self._file.write_text(json.dumps(asdict(found)), encoding="utf-8")


def _kinds() -> dict[str, int]:
    """Bytes on the GPU of what outlives a step."""
    import torch

    from lightlint.forecast.simulation.faking import alive, tensors

    kinds: dict[Kind, dict[int, int]] = {kind: {} for kind in (Kind.PARAMETERS, Kind.BUFFERS, Kind.OPTIMIZER)}

    def add(kind: Kind, tensor: Any) -> None:
        if tensor.is_cuda:
            storage = tensor.untyped_storage()
            kinds[kind][storage.data_ptr()] = storage.nbytes()

    for module in alive(torch.nn.Module):
        for parameter in module.parameters(recurse=False):
            add(Kind.PARAMETERS, parameter)
        for buffer in module.buffers(recurse=False):
            add(Kind.BUFFERS, buffer)
    for optimizer in alive(torch.optim.Optimizer):
        for tensor in tensors(list(optimizer.state.values())):
            add(Kind.OPTIMIZER, tensor)
    return {kind.value: sum(sizes.values()) for kind, sizes in kinds.items() if sizes}
