"""Lightning's own side of the recording: a callback in every Trainer, and the limits that end its loops.

The Trainer's public attributes are set after its constructor returned: `Callback.setup` would be too late, a logger's
`experiment` exists by then. `fast_dev_run` is not used: programs branch on it.
"""

from __future__ import annotations

from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.frameworks import ranks
from lightlint.confirm.boot.frameworks.logger import make_logger

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session


def install(session: Session) -> None:
    """Watch every Trainer, of either package."""
    ranks.install(session)
    for package in ("pytorch_lightning", "lightning.pytorch"):
        session.on_import("lightning", f"{package}.trainer.trainer", lambda module: _watch(session, module))


def _watch(session: Session, module: ModuleType) -> None:
    from lightlint.confirm.boot.frameworks.callback import make_callback

    trainer_class = module.Trainer
    construct = trainer_class.__init__

    @wraps(construct)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if session.plan.devices is not None:
            kwargs.update(ranks.arguments(session.plan.devices, kwargs))
        construct(self, *args, **kwargs)
        limit(self)
        self.callbacks.insert(0, make_callback(trainer_class.__module__.partition(".trainer")[0])(session))

    @session.guard("lightning")
    def limit(trainer: Any) -> None:
        limit_loops(trainer, session)

    trainer_class.__init__ = __init__


def limit_loops(trainer: Any, session: Session) -> None:
    """Shorten a Trainer's loops and send what it writes elsewhere."""
    limits = session.plan.limits
    batches = limits.batches * max(1, trainer.accumulate_grad_batches)
    for stage, most in (
        ("train", batches),
        ("val", limits.batches),
        ("test", limits.batches),
        ("predict", limits.batches),
    ):
        name = f"limit_{stage}_batches"
        own = getattr(trainer, name)
        if isinstance(own, float) or own > most:
            setattr(trainer, name, most)
    epochs = trainer.fit_loop.max_epochs
    if epochs is None or epochs == -1 or epochs > limits.epochs:
        trainer.fit_loop.max_epochs = limits.epochs
    for callback in trainer.callbacks:
        if hasattr(callback, "dirpath") and hasattr(callback, "save_top_k"):
            callback.dirpath = f"{session.plan.scratch}/checkpoints"
    trainer._default_root_dir = session.plan.scratch
    trainer.loggers = [make_logger(_package(trainer), session.plan.scratch) for _ in trainer.loggers]


def _package(trainer: Any) -> str:
    """The Lightning that a Trainer is of: its class may be the program's own."""
    modules = (kind.__module__.partition(".trainer.trainer") for kind in type(trainer).__mro__)
    return next(package for package, found, _ in modules if found)
