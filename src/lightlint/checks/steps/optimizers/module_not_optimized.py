from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import (
    Backward,
    Forward,
    OptimizerMade,
    ParametersChanged,
    StateLoaded,
    Stepped,
    WeightSet,
)
from lightlint.explore.questions.queries import identity, in_sight, is_held
from lightlint.facts.project.mentions import is_called_elsewhere
from lightlint.values.core import Class, Library
from lightlint.values.training import Module, Optimizer, tensors_in

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lightlint.explore.rehearsals import Entry, Path


_MANY = 20


class ModuleNotOptimized(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Whole modules that a training loss reaches, which were made here at random, and that no optimizer has."""
        optimizers = [event.optimizer for event in entry.of(OptimizerMade)]
        if not optimizers or not all(map(_has_no_others, optimizers)):
            return
        beside = [pair for path in entry.paths for pair in _trained_beside(path)]
        if not beside or is_called_elsewhere(self.facts.project, self.facts.source, "add_param_group"):
            return
        changed = {identity(each) for optimizer in optimizers for each in optimizer.parameters} | _changed(entry)
        loaded = {event.object for event in entry.of(StateLoaded)}
        given_back = [value for path in entry.paths for value in path.machine.given_back]
        told: set[Module] = set()
        for module, optimizer in beside:
            told_before = module in told or any(is_held(each, module) for each in given_back)
            if told_before or not loaded.isdisjoint(module.modules()):
                continue
            mine = [each for each in module.parameters() if each.requires_grad]
            known = in_sight([*module.modules(), *mine]) and not any(each.gradient_touched for each in mine)
            known = known and changed.isdisjoint(map(identity, mine)) and not self._is_copy(module)
            if mine and known:
                told.add(module)
                assert module.site is not None
                yield Fault(module.site, _message(module, optimizer), None, (optimizer.site or module.site,))

    def _is_copy(self, module: Module) -> bool:
        """Whether it is what another module was when it was copied: that of a teacher, or of a target."""
        made = self.node_of(module.site) if module.site is not None else None
        return self.names.call(made) in ("copy.deepcopy", "copy.copy")


def _message(module: Module, optimizer: Optimizer) -> str:
    return f"no optimizer gets the parameters of `{module.name}`, which the loss of `{optimizer.name}` reaches: it stays as it was made"


def _has_no_others(optimizer: Optimizer) -> bool:
    known = in_sight([optimizer]) and not optimizer.told and isinstance(optimizer.cls, Library)
    few = 0 < len(optimizer.parameters) < _MANY  # of a loop over more the last may be missing
    return known and (optimizer.of_one or (few and not optimizer.more))


def _changed(entry: Entry) -> set[Hashable]:
    """The parameters that some rehearsal changes by hand, but for giving them their first values."""
    by_hand = (event for event in entry.of(ParametersChanged) if not event.name.startswith("init."))
    found = {identity(each) for event in by_hand for each in event.parameters}
    return found | {identity(event.parameter) for event in entry.of(WeightSet)}


def _trained_beside(path: Path) -> Iterator[tuple[Module, Optimizer]]:
    """The modules whose outputs went into a loss that reached all of them, with an optimizer that then stepped for what stands
    before them: of what stands before what is trained, random features may be all that is wanted."""
    passes = [event for event in path.of(Backward) if event.loss is not None]
    for run in path.of(Forward):
        module, site = run.module.unwrapped(), run.module.site
        made_here = site is not None and all(map(_is_in_sight, module.modules()))
        gives_loss = any(each.role == "loss" for each in tensors_in(run.result))
        if not (run.grad and run.training and made_here) or gives_loss:
            continue
        mine = {each for each in module.parameters() if each.requires_grad}
        before = {parameter for each in tensors_in(run.result) for parameter in each.parameters} - mine
        for backward in passes:
            steps = (each for each in path.of(Stepped) if each.time > backward.time)
            step = next((each for each in steps if not before.isdisjoint(each.parameters)), None)
            if mine and mine <= {*backward.parameters} and step is not None and isinstance(step.optimizer, Optimizer):
                yield module, step.optimizer
                break


def _is_in_sight(module: Module) -> bool:
    """Whether a layer is torch's own, or its class stands in the program, and all that it holds is known."""
    own = isinstance(module.cls, Class) or (isinstance(module.cls, Library) and module.cls.path.startswith("torch.nn."))
    return own and not (module.opaque or module.more_items or module.assumed)
