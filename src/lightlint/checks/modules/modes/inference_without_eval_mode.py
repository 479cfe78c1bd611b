from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Called, Differentiated, FitStarted, Forward, ModeSet, StateLoaded, Stepped
from lightlint.explore.questions.evaluation import is_saved_state
from lightlint.explore.questions.queries import acts_by_mode, in_sight, sure
from lightlint.values.core import Value
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_TRAINING = (Backward, Differentiated, FitStarted, Stepped)
_TRACERS = {"torch.jit.trace": "func", "torch.export.export": "mod"}
_MEANT = re.compile(
    r"(?:^|_)mc(?:$|_|[A-Z])|monte|bayes|uncertain|ensembl|dropout|calib|bn_|_bn|stat|precise|warm|test_|_test|train|^G$|^netG$|[Gg]enerator|GAN$|pix2pix",
    re.IGNORECASE,
)


class InferenceWithoutEvalMode(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules that get saved weights, are never trained, and are asked for results in training mode."""
        if any(path.of(kind) for path in entry.paths for kind in _TRAINING):
            return
        restored = {
            module for event in entry.of(StateLoaded) if is_saved_state(event) for module in _parts(event.object)
        }

        def is_fault(event: Forward) -> bool:
            known = event.module in restored and _is_known(event.module, event.acting)
            return event.training and known and not _is_meant(event) and not _is_tried(event)

        for event in sure(entry, Forward, is_fault):
            yield Fault.at(
                event,
                "a model with loaded weights predicts in training mode: dropout drops, batch norm goes by this batch alone",
            )
        for path in entry.paths:
            for call in path.of(Called):
                module = call.argument(_TRACERS[call.path], 0) if call.path in _TRACERS else None
                if (
                    isinstance(module, Module)
                    and module in restored
                    and _is_known(module)
                    and _trains(path, module, call)
                ):
                    yield Fault.at(
                        call,
                        f"`{call.name}` writes down what the model does in training mode, which no `eval()` changes afterwards",
                    )


def _parts(value: Value) -> list[Module]:
    """A module, those it holds and those that are in wrappers around it."""
    return value.modules() if isinstance(value, Module) else []


def _is_known(module: Module, parts: Iterable[Module] | None = None) -> bool:
    """Whether a module, or the parts of it that a pass called, surely has a layer that acts by the mode."""
    return in_sight(module.modules()) and acts_by_mode(module, parts)


def _is_meant(event: Forward) -> bool:
    """Whether names say that dropout is wanted, or that something else than a result is."""
    return any(_MEANT.search(call.function.name) for call in event.where.calls) or bool(
        _MEANT.search(event.module.name)
    )


def _is_tried(event: Forward) -> bool:
    """Whether a module is given noise or zeros: to see that it runs, or a generator whose batch norm is a matter of taste."""
    return bool(event.inputs) and all(each.origin is not None and not each.table for each in event.inputs)


def _trains(path: Path, module: Module, call: Called) -> bool:
    """Whether a module is in training mode when it is traced."""
    set_before = [each for each in path.of(ModeSet) if each.time < call.time and module in each.module.modules()]
    return not set_before or set_before[-1].training
