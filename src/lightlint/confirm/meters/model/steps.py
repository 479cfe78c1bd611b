"""Optimizer steps and backward passes; ends a raw loop that has taken enough of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.cut import cut
from lightlint.confirm.meters.frames import places
from lightlint.confirm.meters.numbers import OPTIMIZERS

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session


def install(session: Session) -> None:
    """Count from the moment torch is imported."""
    session.on_import("steps", "torch", lambda torch: _Steps(session).watch(torch))
    session.on_import("steps", "torch.distributed", lambda distributed: _watch_group(session, distributed))


class _Steps:
    """The steps of each optimizer and when to cut."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._counts: dict[int, int] = {}
        self._tell = session.guard("steps")(self._count)

    def watch(self, torch: ModuleType) -> None:
        """Use torch's own hooks: they see every optimizer, whoever made it."""
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        def before(optimizer: Any, args: Any, kwargs: Any) -> Any:
            closure = _closure_of(args, kwargs)
            if closure is None:
                self._about_to_update(optimizer)
                return None
            watched = _Closure(closure, lambda: self._about_to_update(optimizer))
            if "closure" in kwargs:
                return args, {**kwargs, "closure": watched}
            return (args[0], watched, *args[2:]), kwargs

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            self._tell(optimizer, getattr(_closure_of(args, kwargs), "runs", None))
            for each in self._session.after_update:
                each(optimizer)
            if not is_automatic() and self._enough():
                cut(self._session)

        register_optimizer_step_pre_hook(before)
        register_optimizer_step_post_hook(after)
        run_backward = torch.autograd.backward

        def backward(*args: Any, **kwargs: Any) -> Any:
            self._session.clock.backwards += 1
            return run_backward(*args, **kwargs)

        torch.autograd.backward = backward  # `Tensor.backward` calls it by this name

    def _about_to_update(self, optimizer: Any) -> None:
        for each in self._session.before_update:
            each(optimizer)

    def _count(self, optimizer: Any, closure_runs: int | None) -> None:
        clock = self._session.clock
        which = OPTIMIZERS.of(optimizer)
        number = self._counts[which] = self._counts.get(which, 0) + 1
        clock.steps = max(clock.steps, number)
        self._session.record.emit(
            "step",
            optimizer=which,
            n=number,
            rates=[float(group["lr"]) for group in optimizer.param_groups],
            backwards=clock.backwards,
            batches=clock.batches,
            closure=closure_runs,
            automatic=is_automatic(),
            places=places(sys._getframe(2), most=1),
        )

    def _enough(self) -> bool:
        """Whether a loop that draws from no loader has stepped often enough; loaders end themselves."""
        limits = self._session.plan.limits
        without_loader = self._session.clock.batches == 0
        return self._session.clock.steps >= limits.epochs * limits.batches * (1 if without_loader else 4)


class _Closure:
    """An optimizer's closure. Behind its first run gradients are what the update will see: Lightning clips them in it."""

    def __init__(self, closure: Callable[[], Any], then: Callable[[], None]) -> None:
        self._closure = closure
        self._then = then
        self.runs = 0

    def __call__(self) -> Any:
        result = self._closure()
        self.runs += 1
        if self.runs == 1:
            self._then()
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._closure, name)


def _closure_of(args: Any, kwargs: Any) -> Any:
    closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
    return closure if callable(closure) else None


def is_automatic() -> bool:
    """Whether Lightning's Trainer drives the loop."""
    from lightlint.confirm.boot.frameworks.fitting import fitting

    return fitting()


def _watch_group(session: Session, distributed: ModuleType) -> None:
    join = distributed.init_process_group

    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        tell_joining()
        result = join(*args, **kwargs)
        tell()
        return result

    @session.guard("steps")
    def tell_joining() -> None:
        session.record.emit("joining", places=places(sys._getframe(2)))

    @session.guard("steps")
    def tell() -> None:
        session.is_rank = True
        session.record.emit(
            "rank",
            rank=distributed.get_rank(),
            world=distributed.get_world_size(),
            backend=str(distributed.get_backend()),
        )

    distributed.init_process_group = init_process_group  # type: ignore[attr-defined]
