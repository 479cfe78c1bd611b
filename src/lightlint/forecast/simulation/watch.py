"""Where the simulation takes hold of a program: its loaders, and Lightning's Trainer."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any, Protocol


class Simulation(Protocol):
    """What feeds a loop with simulated batches."""

    draws_from_loader: bool

    @property
    def running(self) -> bool:
        """Whether everything is fake already."""
        ...

    def begin(self, batch: Any) -> Any:
        """Make everything fake; the first simulated batch."""
        ...

    def draw(self) -> Any:
        """The next simulated batch."""
        ...


def watch_loaders(module: ModuleType, simulation: Simulation) -> None:
    """Hand the simulation the first batch of a loader that training draws from, and its own from then on."""
    iterate = module.DataLoader.__iter__

    def __iter__(loader: Any) -> Iterator[Any]:
        simulation.draws_from_loader = True
        return _feed(loader, iterate, simulation)

    module.DataLoader.__iter__ = __iter__


def _feed(loader: Any, iterate: Any, simulation: Simulation) -> Iterator[Any]:
    import torch

    from lightlint.forecast.simulation.faking import alive

    while simulation.running:
        yield simulation.draw()
    for batch in iterate(loader):
        if not simulation.running and alive(torch.optim.Optimizer) and torch.is_grad_enabled():
            yield simulation.begin(batch)
            while True:
                yield simulation.draw()
        yield batch


_SHORTEST = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "num_sanity_val_steps": 0,
    "limit_val_batches": 0,
    "max_epochs": -1,
    "max_steps": -1,
    "devices": 1,
    "num_nodes": 1,
    "strategy": "auto",
}


def _kept(callbacks: Any) -> list[Any]:
    """The callbacks that can take memory: the user's own, and Lightning's averages of weights."""
    given = callbacks if isinstance(callbacks, list) else [callbacks] if callbacks is not None else []
    ours = ("lightning.", "pytorch_lightning.")
    return [
        each
        for each in given
        if not type(each).__module__.startswith(ours) or type(each).__name__.endswith("Averaging")
    ]


def watch_trainers(module: ModuleType) -> None:
    """A Trainer that goes the shortest way to its first training batch, without a device."""
    import torch

    construct = module.Trainer.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs.update(_SHORTEST, callbacks=_kept(kwargs.get("callbacks")))
        if not torch.cuda.is_available():
            kwargs["accelerator"] = "cpu"
            if str(kwargs.get("precision", "")).startswith("16"):
                kwargs["precision"] = "bf16-mixed"  # as many bytes; the CPU has no float16 training
        construct(self, *args, **kwargs)

    module.Trainer.__init__ = __init__
