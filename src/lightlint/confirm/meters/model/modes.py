"""Training mode, autograd mode and trainable parameters: at each forward pass and around Lightning's batches."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.frameworks.fitting import fitting
from lightlint.confirm.boot.guard import is_quiet
from lightlint.confirm.meters.numbers import Lines, Numbers, is_module, is_tensor

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MOST_PASSES = 400
_MOST_NAMES = 40


def install(session: Session) -> None:
    """Watch the forward passes of modules that no other one calls, and Lightning's hooks."""
    meter = _Modes(session)
    guard = session.guard("modes")
    session.on_import("modes", "torch.nn.modules.module", lambda module: meter.watch(module, guard(meter.forward)))
    session.in_trainer.append(guard(meter.trainer))
    session.snapshots["trainable"] = trainable
    session.at_end.append(guard(meter.end))


class _Modes:
    """The modules seen so far."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lines = Lines(session)
        self._numbers = Numbers()
        self._known: set[int] = set()  # modules that belong to one seen before
        self._passes = 0
        self._trainer: weakref.ref[Any] | None = None
        self._module: weakref.ref[Any] | None = None

    def watch(self, module: ModuleType, look: Any) -> None:
        """Put a hook before every forward pass; it changes nothing."""

        def before(called: Any, _inputs: Any) -> None:
            if not is_quiet() and id(called) not in self._known:
                look(called)

        module.register_module_forward_pre_hook(before)

    def forward(self, module: Any) -> None:
        """A forward pass begins."""
        import torch

        if self._passes >= _MOST_PASSES:
            return
        self._passes += 1
        for child in module.modules():
            if child is not module:
                self._known.add(id(child))
        acting = [(name, child.training) for name, child in module.named_modules() if _acts(child)]
        self._session.record.emit(
            "forward",
            module=self._numbers.of(module),
            type=type(module).__name__,
            training=module.training,
            acting=[
                [name for name, on in acting if on][:_MOST_NAMES],
                [name for name, on in acting if not on][:_MOST_NAMES],
            ],
            grad=torch.is_grad_enabled(),
            trainable=any(each.requires_grad for each in module.parameters()),
            stage=self._running(),
            backwards=self._session.clock.backwards,
            findings=self._lines.now(),
        )

    def _running(self) -> str:
        trainer = self._trainer() if self._trainer and fitting() else None
        stage = getattr(getattr(trainer, "state", None), "stage", None)
        return str(getattr(stage, "value", stage or ""))

    def trainer(self, hook: str, trainer: Any, module: Any) -> None:
        """Which parameters are trained when training starts, and behind each batch."""
        if hook == "setup":
            self._trainer, self._module = weakref.ref(trainer), weakref.ref(module)
        if hook in {"on_train_start", "on_train_batch_end"}:
            self._flags(hook, module)
            held = {
                id(each)
                for optimizer in trainer.optimizers
                for group in optimizer.param_groups
                for each in group["params"]
            }
            missing = [name for name, each in module.named_parameters() if each.requires_grad and id(each) not in held]
            self._session.record.emit("optimized", when=hook, held=len(held), missing=missing[:_MOST_NAMES])

    def end(self) -> None:
        """What is trained at the end, an error's included."""
        module = self._module() if self._module else None
        if module is not None:
            self._flags("end", module)

    def _flags(self, when: str, module: Any) -> None:
        off = [name for name, each in module.named_parameters() if not each.requires_grad]
        total = sum(1 for _ in module.parameters())
        self._session.record.emit("frozen", when=when, off=off[:_MOST_NAMES], count=len(off), total=total)


def _acts(module: Any) -> bool:
    """Whether a module does another thing in training mode than in eval mode."""
    from torch import nn

    batch_norm = getattr(nn.modules.batchnorm, "_BatchNorm", ())
    if isinstance(module, batch_norm):
        return True
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return bool(module.p > 0)
    return isinstance(module, nn.RNNBase | nn.MultiheadAttention) and float(module.dropout) > 0


def trainable(frame: Any) -> Mapping[str, Any]:
    """For the modules and parameters among a frame's variables: how many parameters ask for gradients."""
    if "torch" not in sys.modules:
        return {}
    found: dict[str, Any] = {}
    for name, value in list(frame.f_locals.items()):
        if is_module(value) and len(found) < _MOST_NAMES:
            found[name] = sum(each.requires_grad for each in value.parameters())
        elif is_tensor(value) and type(value).__name__ == "Parameter" and len(found) < _MOST_NAMES:
            found[name] = int(value.requires_grad)
    return found
