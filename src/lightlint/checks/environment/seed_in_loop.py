from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Called, OptimizerMade, Stepped
from lightlint.explore.questions.queries import loops_again
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.code.tree import Loop
from lightlint.facts.data.loops import LoopKind
from lightlint.facts.objects.classes import OPTIMIZER
from lightlint.values.core import Constant

if TYPE_CHECKING:
    from lightlint.engine.events import Event
    from lightlint.explore.rehearsals import Entry, Path

_SEEDS = {"torch.manual_seed", "torch.random.manual_seed", "lightning.seed_everything"}
_ANEW = {"torch.seed", "torch.random.seed"}
_RESTORES = {"torch.set_rng_state", "torch.random.fork_rng", "torch.random.set_rng_state"}


class SeedInLoop(Check):
    def visit_Call(self, call: cst.Call) -> None:
        loops = (self.tree.loops(call) or self._outside(call)) if self._seeds(call) else []
        if not loops:
            return
        loop = loops[0]
        if not self._is_training(loop) or self._is_rare(call, loop) or self._is_seeded_anew(loop):
            return
        if not self._is_restored():
            what = "step" if self.loops.kind(loop) is LoopKind.BATCH else "epoch"
            self.report(call, _message(what))

    def _is_restored(self) -> bool:
        return any(self.names.call(each) in _RESTORES for each in self.tree.all(cst.Call))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Seeds in each turn of a loop that trains one model further."""
        if _SEEDS.isdisjoint(entry.calls) or not _RESTORES.isdisjoint(entry.calls) or self._is_restored():
            return
        for path in entry.paths:
            again = loops_again(path)
            for event in path.of(Called):
                turns = event.where.turns
                loop = turns[-1].loop if turns and event.path in _SEEDS and _is_fixed(event) else None
                if loop in again and turns[-1].number == 1:
                    continue  # `step % 1000 == 0` holds for the first step
                always = all(each.known for each in event.where.conditions)
                if loop is not None and always and _trains_on(path, event) and not _is_seeded_anew(path, event):
                    yield Fault.at(event, _message("step" if loop.kind == "batch" else "epoch"))

    def _is_seeded_anew(self, loop: Loop) -> bool:
        """Whether a loop also seeds with something that may differ from turn to turn."""
        calls = [*self.tree.within(loop.body, cst.Call)]
        given = (self._seed(each) for each in calls)
        unknown = any(each is not None and self.names.constant(each) in (UNKNOWN, None) for each in given)
        return unknown or any(self.names.call(each) in _ANEW for each in calls)

    def _seeds(self, call: cst.Call) -> bool:
        """Whether a call seeds torch with a constant, itself or in a helper of this file."""
        given = self._seed(call)
        if given is None or self.names.constant(given) in (UNKNOWN, None):
            return False
        return self.names.call(call) in _SEEDS or not self.facts.steps.leads(call, self.loops.is_backward)

    def _seed(self, call: cst.Call) -> cst.BaseExpression | None:
        """What a call seeds torch with, itself or in a helper of this file."""
        if self.names.call(call) in _SEEDS and call.args:
            return call.args[0].value
        helper = self.hooks.callee(call)
        for seed in self.tree.own(helper.body, cst.Call) if helper is not None else []:
            if self.names.call(seed) not in _SEEDS or not seed.args or self.facts.conditions(seed) or helper is None:
                continue
            given: cst.BaseExpression | None = seed.args[0].value
            parameters = {each.name.value: each for each in (*helper.params.params, *helper.params.kwonly_params)}
            if isinstance(given, cst.Name) and given.value in parameters:
                if self.names.has_star(call) or self._is_bound_again(helper, given.value):
                    continue
                default = parameters[given.value].default
                given = self.values.given(helper, call, given.value) or default
            if given is not None:
                return given
        return None

    def _is_bound_again(self, helper: cst.FunctionDef, name: str) -> bool:
        return len(self.names.bindings.lookup_in(name, helper)) != 1

    def _outside(self, call: cst.Call) -> list[Loop]:
        """The loops around the one call of the training function that seeds before it draws."""
        function = self.tree.function(call)
        calls = self.hooks.calls_of.get(function, ()) if function is not None else ()
        trains = function is not None and bool(self.facts.steps.runs(function.body, self.loops.is_backward))
        return self.tree.loops(calls[0]) if len(calls) == 1 and trains and not self.facts.conditions(call) else []

    def _is_training(self, loop: Loop) -> bool:
        """Whether the iterations of a loop train one model further: they update it, and make no optimizer."""
        if self.loops.kind(loop) not in {LoopKind.EPOCH, LoopKind.BATCH} or not self.facts.steps.updates(loop):
            return False
        bodies: list[cst.CSTNode] = [loop.body]
        for body in bodies:
            for call in self.tree.within(body, cst.Call):
                bodies.extend(each.body for each in self.hooks.callees(call) if each.body not in bodies)
        calls = [call for body in bodies for call in self.tree.within(body, cst.Call)]
        made = any(self.classes.name_is_a(self.names.call(call), OPTIMIZER) for call in calls)
        return not made and any(self.loops.is_backward(call) for call in calls)

    def _is_rare(self, call: cst.Call, loop: Loop) -> bool:
        return any(self.tree.contains(loop.body, test) for test, _ in self.facts.conditions(call))


def _message(what: str) -> str:
    return f"each {what} draws the same random numbers as the one before"


def _is_fixed(event: Called) -> bool:
    """Whether the same number is the seed each time."""
    seed = event.argument("seed", 0)
    return isinstance(seed, Constant) and seed.value is not None and not seed.traits


def _trains_on(path: Path, seeded: Called) -> bool:
    """Whether the loop around a seed updates weights, and makes no optimizer."""
    updates = _any_beside(seeded, path.of(Stepped)) and _any_beside(seeded, path.of(Backward))
    return updates and not _any_beside(seeded, path.of(OptimizerMade))


def _is_seeded_anew(path: Path, seeded: Called) -> bool:
    """Whether the loop around a seed also seeds with something that may differ from turn to turn."""
    calls = [each for each in path.of(Called) if each.path in _SEEDS | _ANEW]
    return _any_beside(seeded, (each for each in calls if not _is_fixed(each) or _is_another(seeded, each)))


def _is_another(seeded: Called, other: Called) -> bool:
    """Whether one call gives another number in another turn, as one that goes through the ranks does."""
    one, two = seeded.argument("seed", 0), other.argument("seed", 0)
    return seeded.site == other.site and getattr(one, "value", None) != getattr(two, "value", None)


def _any_beside(seeded: Called, events: Iterable[Event]) -> bool:
    """Whether one of some events happens in the loop around a seed."""
    loop, depth = seeded.where.turns[-1].loop, len(seeded.where.turns)
    return any(len(each.where.turns) >= depth and each.where.turns[depth - 1].loop is loop for each in events)
