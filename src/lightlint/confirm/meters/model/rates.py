"""Learning-rate schedulers: what is made, who steps it and when, and what Lightning holds of it."""

from __future__ import annotations

import sys
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.frameworks.fitting import fitting
from lightlint.confirm.meters.numbers import OPTIMIZERS, Lines, Numbers

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_LENGTHS = ("total_steps", "T_max", "T_0", "total_iters", "step_size")  # what the schedulers call it
_DEEPEST = 40  # frames between Lightning's loop and a scheduler's step


def install(session: Session) -> None:
    """Watch torch's schedulers; those of other libraries are made of them."""
    meter = _Rates(session)
    session.in_trainer.append(session.guard("rates")(meter.held))
    session.on_import("rates", "torch.optim.lr_scheduler", meter.watch)


class _Rates:
    """Schedulers by number."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lines = Lines(session)
        self._numbers = Numbers()
        self._depth = 0  # schedulers step those they are made of
        self._initial = 0
        self._made = session.guard("rates")(self._tell_made)
        self._stepped = session.guard("rates")(self._tell_step)

    def watch(self, module: ModuleType) -> None:
        """Every class of torch's with a constructor that ends in torch's own, and every `step`."""
        base = getattr(module, "LRScheduler", None) or module._LRScheduler
        for scheduler_class in {base, module.ReduceLROnPlateau}:
            if "__init__" in vars(scheduler_class):
                self._watch_init(scheduler_class)
        self._watch_initial(base)
        for scheduler_class in list(vars(module).values()):
            steps = isinstance(scheduler_class, type) and "step" in vars(scheduler_class)
            if steps and issubclass(scheduler_class, base | module.ReduceLROnPlateau):
                self._watch_step(scheduler_class)

    def _watch_init(self, scheduler_class: Any) -> None:
        construct, meter = scheduler_class.__init__, self

        @wraps(construct)
        def __init__(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            construct(scheduler, *args, **kwargs)
            meter._made(scheduler)

        scheduler_class.__init__ = __init__

    def _watch_initial(self, base: Any) -> None:
        if not hasattr(base, "_initial_step"):
            return
        first, meter = base._initial_step, self

        @wraps(first)
        def _initial_step(scheduler: Any) -> Any:
            meter._initial += 1
            try:
                return first(scheduler)
            finally:
                meter._initial -= 1

        base._initial_step = _initial_step

    def _watch_step(self, scheduler_class: Any) -> None:
        run, meter = scheduler_class.step, self

        @wraps(run)
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if meter._initial or meter._depth:
                return run(scheduler, *args, **kwargs)
            before = _rates(scheduler), getattr(scheduler, "num_bad_epochs", None)
            meter._depth += 1
            try:
                return run(scheduler, *args, **kwargs)
            finally:
                meter._depth -= 1
                meter._stepped(scheduler, before, [*args, *kwargs.values()])

        scheduler_class.step = step

    def _tell_made(self, scheduler: Any) -> None:
        self._session.record.emit(
            "scheduler",
            scheduler=self._numbers.of(scheduler),
            type=type(scheduler).__name__,
            optimizer=OPTIMIZERS.of(scheduler.optimizer),
            length=next((getattr(scheduler, name) for name in _LENGTHS if hasattr(scheduler, name)), None),
            mode=getattr(scheduler, "mode", None),
            rates=_rates(scheduler),
            findings=self._lines.now(),
        )

    def _tell_step(self, scheduler: Any, before: tuple[list[float], int | None], given: list[Any]) -> None:
        number = next((float(each) for each in given if isinstance(each, int | float) or hasattr(each, "item")), None)
        self._session.record.emit(
            "scheduler-step",
            scheduler=self._numbers.of(scheduler),
            type=type(scheduler).__name__,
            rates=[before[0], _rates(scheduler)],
            bad=[before[1], getattr(scheduler, "num_bad_epochs", None)],
            given=number,
            by_trainer=_by_trainer(),
            batches=self._session.clock.batches,
            findings=self._lines.now(),
        )

    def held(self, hook: str, trainer: Any, _module: Any) -> None:
        """What the Trainer holds once its loop begins, and where its epochs begin."""
        if hook == "on_train_epoch_start":
            self._session.record.emit("epoch", number=trainer.current_epoch)
        if hook != "on_train_start":
            return
        configs = [
            {
                "scheduler": self._numbers.of(config.scheduler),
                "interval": config.interval,
                "frequency": config.frequency,
                "monitor": config.monitor,
            }
            for config in trainer.lr_scheduler_configs
        ]
        self._session.record.emit(
            "schedulers",
            held=configs,
            automatic=trainer.lightning_module.automatic_optimization,
            batches=_length(trainer.train_dataloader),
            in_run=_whole(trainer.estimated_stepping_batches),
        )


def _rates(scheduler: Any) -> list[float]:
    return [float(group["lr"]) for group in scheduler.optimizer.param_groups]


def _length(loaders: Any) -> int | None:
    try:
        return len(loaders)
    except (TypeError, NotImplementedError):
        return None


def _whole(number: float) -> int | None:
    return int(number) if number not in {float("inf"), -1} else None


def _by_trainer() -> bool:
    """Whether Lightning's loop asked for the step: its own function for that is on the stack."""
    if not fitting():
        return False
    frame = sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame.f_code.co_name == "_update_learning_rates":
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False
