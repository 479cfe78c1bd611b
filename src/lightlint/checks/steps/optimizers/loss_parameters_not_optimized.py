from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Forward, OptimizerMade, StateLoaded, Stepped
from lightlint.explore.questions.queries import identity, in_sight, is_held
from lightlint.facts.project.mentions import is_called_elsewhere
from lightlint.values.core import Class, Value
from lightlint.values.training import Module, Tensor, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LossParametersNotOptimized(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parameters that a module which gives a loss keeps for itself, reached by gradients and in no optimizer."""
        optimizers = [event.optimizer for event in entry.of(OptimizerMade)]
        if not optimizers or any(each.escaped for each in optimizers) or not any(True for _ in entry.of(Stepped)):
            return
        known = [bool(each.parameters) and not each.more for each in optimizers]
        if any(known) and not all(known):
            return  # these may be what one got that is out of sight
        if is_called_elsewhere(self.facts.project, self.facts.source, "add_param_group"):
            return
        stepped = {identity(each) for optimizer in optimizers for each in optimizer.parameters}
        reached = {identity(each) for event in entry.of(Backward) for each in event.parameters}
        loaded = {id(event.object) for event in entry.of(StateLoaded)}
        kept = [value for path in entry.paths for value in path.machine.given_back]
        for event in entry.of(Forward):
            module = event.module
            if any(is_held(each, module) for each in kept):
                continue
            gives_loss = any(each.role == "loss" for each in tensors_in(event.result))  # with other numbers, perhaps
            if not gives_loss or id(module) in loaded or module.site is None:
                continue
            for name, each in _learned(module):
                if identity(each) in reached and identity(each) not in stepped and in_sight([module, each]):
                    message = f"`{module.name}` has a parameter of its own, `{name}`, and no optimizer gets it: it stays as it was made"
                    yield Fault(module.site, message)
                    break


def _learned(module: Module) -> list[tuple[str, Tensor]]:
    """The parameters that a class of the program makes for itself."""
    held = module.attributes.items() if isinstance(module.cls, Class) else ()
    tensors = ((name, each) for name, value in held for each in (value, *_listed(value)) if isinstance(each, Tensor))
    return [(name, each) for name, each in tensors if each.parameter and each.requires_grad and not each.table]


def _listed(value: Value) -> list[Value]:
    """What a ParameterList or ParameterDict holds."""
    if not isinstance(value, Module) or not value.items or not value.name.startswith("Parameter"):
        return []
    return [*(value.items.values() if isinstance(value.items, dict) else value.items)]
