"""Gradients on their way from a backward pass to an update: who computes, clears, clips and uses them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.meters.model.graph import root_of_pass
from lightlint.confirm.meters.model.scalers import Scalers
from lightlint.confirm.meters.numbers import OPTIMIZERS, PARAMETERS, Lines

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_DEEPEST = 40  # frames between a backward pass and what started it
_CLIPS = ("clip_grad_norm_", "clip_grad_value_")


def install(session: Session) -> None:
    """Watch torch's own functions; each keeps its signature and what it returns."""
    meter = _Gradients(session)
    guard = session.guard("gradients")
    session.before_update.append(guard(meter.update))
    session.after_update.append(guard(meter.updated))
    session.in_trainer.append(guard(meter.trainer))
    session.on_import("gradients", "torch.optim.optimizer", meter.watch_optimizers)
    session.on_import("gradients", "torch", meter.watch_torch)
    session.on_import("gradients", "torch.amp.grad_scaler", meter.scalers.watch)
    for package in ("lightning.fabric.fabric", "lightning_fabric.fabric"):
        session.on_import("gradients", package, meter.watch_fabric)


class _Gradients:
    """What the events need to know of optimizers and scalers."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lines = Lines(session)
        self.scalers = Scalers()
        guard = session.guard("gradients")
        self._made = guard(self._tell_optimizer)
        self._backward = guard(self._tell_backward)
        self._zero = guard(self._tell_zero)
        self._look = guard(self._look_before)
        self._measure = guard(self._measure_before)
        self._clip = guard(self._tell_clip)
        self._grad = guard(self._tell_grad)

    def watch_optimizers(self, module: ModuleType) -> None:
        """Optimizers that are made, and their `zero_grad`."""
        construct, clear = module.Optimizer.__init__, module.Optimizer.zero_grad
        meter = self

        @wraps(construct)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            construct(optimizer, *args, **kwargs)
            meter._made(optimizer)

        @wraps(clear)
        def zero_grad(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            meter._zero([each for group in optimizer.param_groups for each in group["params"]], "optimizer")
            return clear(optimizer, *args, **kwargs)

        module.Optimizer.__init__, module.Optimizer.zero_grad = __init__, zero_grad

    def watch_torch(self, torch: ModuleType) -> None:
        """Backward passes, `Module.zero_grad`, clipping and `autograd.grad`."""
        meter = self
        run, grad, clear = torch.autograd.backward, torch.autograd.grad, torch.nn.Module.zero_grad

        @wraps(run)
        def backward(*args: Any, **kwargs: Any) -> Any:
            tensors = args[0] if args else kwargs.get("tensors")
            seen: dict[str, Any] = {}
            meter._look(seen, tensors)
            result = run(*args, **kwargs)
            meter._backward(seen)
            return result

        @wraps(grad)
        def wrapped_grad(*args: Any, **kwargs: Any) -> Any:
            result = grad(*args, **kwargs)
            meter._grad(result)
            return result

        @wraps(clear)
        def zero_grad(module: Any, *args: Any, **kwargs: Any) -> Any:
            meter._zero(list(module.parameters()), "module")
            return clear(module, *args, **kwargs)

        torch.autograd.backward, torch.autograd.grad = backward, wrapped_grad
        torch.nn.Module.zero_grad = zero_grad
        for name in _CLIPS:
            self._watch_clip(torch, name)

    def _watch_clip(self, torch: ModuleType, name: str) -> None:
        clip = getattr(torch.nn.utils, name)
        meter = self

        @wraps(clip)
        def clipped(parameters: Any, limit: Any = None, *args: Any, **kwargs: Any) -> Any:
            given = parameters if hasattr(parameters, "grad") else list(parameters)
            most = limit if limit is not None else kwargs.get("max_norm", kwargs.get("clip_value"))
            tensors = [given] if hasattr(given, "grad") else given
            seen: dict[str, Any] = {}
            meter._measure(seen, tensors)
            result = clip(given, limit, *args, **kwargs) if limit is not None else clip(given, *args, **kwargs)
            meter._clip(name, tensors, most, seen)
            return result

        for module in (torch.nn.utils, sys.modules["torch.nn.utils.clip_grad"]):
            setattr(module, name, clipped)

    def watch_fabric(self, module: ModuleType) -> None:
        """The precision and strategy of each Fabric."""
        construct = module.Fabric.__init__
        tell = self._session.guard("gradients")(lambda fabric: self._tell_precision(fabric._precision, fabric.strategy))

        @wraps(construct)
        def __init__(fabric: Any, *args: Any, **kwargs: Any) -> None:
            construct(fabric, *args, **kwargs)
            tell(fabric)

        module.Fabric.__init__ = __init__

    def trainer(self, hook: str, trainer: Any, _module: Any) -> None:
        """The precision and strategy of a Trainer."""
        if hook == "setup":
            self._tell_precision(trainer.precision_plugin, trainer.strategy)

    def _tell_precision(self, plugin: Any, strategy: Any) -> None:
        self._session.record.emit(
            "precision",
            precision=str(getattr(plugin, "precision", "")),
            scaler=getattr(plugin, "scaler", None) is not None,
            strategy=type(strategy).__name__,
        )

    def updated(self, optimizer: Any) -> None:
        """Right after an optimizer changed its parameters."""
        tensors = _parameters(optimizer)
        self._session.record.emit(
            "updated",
            optimizer=OPTIMIZERS.of(optimizer),
            state=sum(bool(optimizer.state.get(each)) for each in tensors),
        )

    def update(self, optimizer: Any) -> None:
        """Right before an optimizer changes its parameters."""
        tensors = _parameters(optimizer)
        count, whole = measured(tensors)
        self._session.record.emit(
            "update",
            optimizer=OPTIMIZERS.of(optimizer),
            findings=self._lines.now(),
            held=count,
            none=sum(each.grad is None for each in tensors),
            total=len(tensors),
            norm=whole,
            state=sum(bool(optimizer.state.get(each)) for each in tensors),
            backwards=self._session.clock.backwards,
            scaler=self.scalers.of(optimizer),
        )

    def _tell_optimizer(self, optimizer: Any) -> None:
        self._session.record.emit(
            "optimizer",
            optimizer=OPTIMIZERS.of(optimizer),
            type=type(optimizer).__name__,
            parameters=[PARAMETERS.of(each) for each in _parameters(optimizer)],
            groups=[len(group["params"]) for group in optimizer.param_groups],
            findings=self._lines.now(),
        )

    def _look_before(self, seen: dict[str, Any], tensors: Any) -> None:
        seen |= root_of_pass(tensors)
        seen["through"] = _through()
        seen["findings"] = self._lines.now()
        seen["before"] = self._by_optimizer()

    def _tell_backward(self, seen: dict[str, Any]) -> None:
        self._session.record.emit(
            "backward",
            n=self._session.clock.backwards,
            batches=self._session.clock.batches,
            after=self._by_optimizer(),
            **seen,
        )

    def _by_optimizer(self) -> dict[str, list[float]]:
        """For each optimizer: parameters that hold a gradient, and the norm of all."""
        found = {}
        for number, optimizer in OPTIMIZERS.living():
            found[str(number)] = list(measured(_parameters(optimizer)))
        return found

    def _tell_zero(self, tensors: Sequence[Any], by: str) -> None:
        these = {id(each) for each in tensors}
        whole = [
            number
            for number, optimizer in OPTIMIZERS.living()
            if all(id(each) in these for each in _parameters(optimizer))
        ]
        self._session.record.emit(
            "zero-grad",
            by=by,
            optimizers=whole,
            held=measured(tensors)[0],
            total=len(tensors),
            findings=self._lines.now(),
            backwards=self._session.clock.backwards,
        )

    def _measure_before(self, seen: dict[str, Any], tensors: Sequence[Any]) -> None:
        seen["before"] = measured(tensors)[1]

    def _tell_clip(self, function: str, tensors: Sequence[Any], limit: Any, seen: dict[str, Any]) -> None:
        these = {id(each) for each in tensors}
        touched = [
            (number, optimizer)
            for number, optimizer in OPTIMIZERS.living()
            if any(id(each) in these for each in _parameters(optimizer))
        ]
        scalers = [self.scalers.of(optimizer) for _, optimizer in touched]
        count, whole = measured(tensors)
        self._session.record.emit(
            "clip",
            function=function,
            findings=self._lines.now(),
            limit=float(limit),
            parameters=len(tensors),
            held=count,
            before=seen.get("before"),
            after=whole,
            optimizers=[number for number, _ in touched],
            scaler=next((each for each in scalers if each), None),
            backwards=self._session.clock.backwards,
        )

    def _tell_grad(self, result: Any) -> None:
        gradients = [each for each in result if each is not None]
        self._session.record.emit(
            "grad",
            findings=self._lines.now(),
            count=len(gradients),
            with_graph=sum(each.grad_fn is not None or each.requires_grad for each in gradients),
        )


def _parameters(optimizer: Any) -> list[Any]:
    return [each for group in optimizer.param_groups for each in group["params"]]


def _gradients(tensors: Iterable[Any]) -> list[Any]:
    return [each.grad.detach() for each in tensors if each.grad is not None]


def measured(tensors: Iterable[Any]) -> tuple[int, float]:
    """How many of the tensors have a gradient that is not all zero, and the norm of all gradients together.

    One look at each gradient: a norm that is not 0 says both.
    """
    import torch

    norms = [_dense(grad).float().norm() for grad in _gradients(tensors)]
    if not norms:
        return 0, 0.0
    every = torch.stack([each.to(norms[0].device) for each in norms])
    return int(every.ne(0).sum()), float(every.norm())


def _dense(gradient: Any) -> Any:
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def _through() -> str:
    """Whose backward function started the pass: Lightning's Trainer, Fabric, or nobody's."""
    frame = sys._getframe(1)
    for _ in range(_DEEPEST):
        name, file = frame.f_code.co_name, frame.f_code.co_filename.replace("\\", "/")
        if name == "backward" and "/fabric/fabric" in file:
            return "fabric"
        if name == "backward" and "/strategies/" in file and ("lightning" in file):
            return "lightning"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return ""
