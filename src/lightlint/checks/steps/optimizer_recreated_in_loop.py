from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import OptimizerMade
from lightlint.explore.queries import in_batch, in_sight
from lightlint.facts.bindings import Binding
from lightlint.facts.loops import LoopKind
from lightlint.facts.tree import Loop
from lightlint.facts.updates import parameters_of
from lightlint.values.core import Site, is_constant
from lightlint.values.training import Optimizer, Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lightlint.explore.rehearsals import Entry


_RESETTING = re.compile(r"load_state_dict|reset|init|deepcopy|^apply$|build|create|fold", re.IGNORECASE)
_REPEATED = re.compile(r"epoch|loader|batch", re.IGNORECASE)


class OptimizerRecreatedInLoop(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.of(call.func) or ""
        if not name.startswith("torch.optim.") or not self.classes.name_is_a(name, "torch.optim.Optimizer"):
            return
        if not self.tree.loops(call):
            self._judge_helper(call, name)
            return
        loop = self.tree.loops(call)[0]
        params = self.names.argument(call, "params", 0)
        module = parameters_of(params.value) if params is not None else ""
        if not module or not self._keeps_state(call, name) or not self._is_training(loop):
            return
        if self._is_chosen(call, loop) or self._starts_over(loop, module):
            return
        self._report(call, name, loop)

    def _judge_helper(self, call: cst.Call, name: str) -> None:
        """An optimizer that a function makes each time it is called, where its only call stands in a loop over epochs."""
        function = self.tree.function(call)
        calls = self.facts.steps.calls_of.get(function, ()) if function is not None else ()
        params = self.names.argument(call, "params", 0)
        module = parameters_of(params.value) if params is not None else ""
        if function is None or len(calls) != 1 or not self.tree.loops(calls[0]) or self.facts.conditions(call):
            return
        given = {arg: self.values.given(function, calls[0], arg) for arg in self._parameters(function)}
        used = {each.value for each in self.tree.within(call, cst.Name)} & set(given)
        key, loop = self.names.key(given.get(module)), self.tree.loops(calls[0])[0]
        if not key or not self._keeps_state(call, name) or not self._is_training(loop):
            return
        if any(self._starts_over(body, module) for body in (loop, function)) or self._starts_over(loop, key):
            return
        if self._is_chosen(calls[0], loop, [value for arg in used if (value := given[arg]) is not None]):
            return
        if any(self.tree.contains(loop, each.site) for each in self._bound(given[module])):
            return
        self._report(call, name, loop)

    def _parameters(self, function: cst.FunctionDef) -> list[str]:
        return [each.name.value for each in function.params.params]

    def _bound(self, value: cst.BaseExpression | None) -> list[Binding]:
        names = self.tree.within(value, cst.Name) if value is not None else []
        return [binding for each in names for binding in self.names.bindings.lookup(each)]

    def _report(self, call: cst.Call, name: str, loop: Loop) -> None:
        what = "batch" if self.loops.kind(loop) is LoopKind.BATCH else "epoch"
        self.report(
            call,
            f"a new `{name.rpartition('.')[2]}` in each {what} over a model that stays: what it has averaged is lost each time",
        )

    def _keeps_state(self, call: cst.Call, name: str) -> bool:
        """Whether the optimizer remembers earlier gradients, which plain SGD does not."""
        momentum = self.names.argument(call, "momentum", 2)
        return name != "torch.optim.SGD" or (momentum is not None and self.names.constant(momentum.value) != 0)

    def _is_training(self, loop: Loop) -> bool:
        """Whether a loop goes over epochs or batches, by what it does and by name, and steps an optimizer."""
        kind = self.loops.kind(loop)
        if not isinstance(loop, cst.For) or kind is LoopKind.OTHER:
            return False
        words = [name.value for part in (loop.target, loop.iter) for name in self.tree.within(part, cst.Name)]
        steps = self.facts.steps.runs(loop.body, self.facts.accumulation.is_step)
        return bool(steps) and (self.values.is_batch_loop(loop) or any(_REPEATED.search(word) for word in words))

    def _is_chosen(self, call: cst.Call, loop: Loop, values: list[cst.BaseExpression] | None = None) -> bool:
        """Whether a test of the iteration, or a value that goes with it, decides about the new optimizer."""
        tested = any(self.tree.contains(loop.body, test) for test, _ in self.facts.conditions(call))
        bound = [binding for value in ([call] if values is None else values) for binding in self._bound(value)]
        return tested or any(self.tree.contains(loop, binding.site) for binding in bound)

    def _starts_over(self, loop: Loop | cst.FunctionDef, module: str) -> bool:
        """Whether a loop or a function makes, copies or resets models."""
        if any(_RESETTING.search(self.names.method(each)) for each in self.tree.own(loop.body, cst.Call)):
            return True
        targets = self.tree.own(loop.body, cst.AssignTarget)
        return any(self.names.key(each.target) == module for each in targets)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Optimizers made anew for parameters that one made at the same place has stepped."""
        for path in entry.paths:
            made: dict[tuple[Site, Tensor], Optimizer] = {}
            for event in path.of(OptimizerMade):
                optimizer = event.optimizer
                before = next((made[key] for each in optimizer.parameters if (key := (event.site, each)) in made), None)
                made.update({(event.site, each): optimizer for each in optimizer.parameters})
                if before is None or not before.steps or not event.where.turns or event.where.conditions:
                    continue
                if _averages(optimizer) and in_sight([before, optimizer]) and _options(before) == _options(optimizer):
                    what = "iteration" if in_batch(event.where) else "epoch"
                    yield Fault.at(
                        event,
                        f"a new `{optimizer.name}` in each {what} over a model that stays: what it has averaged is lost each time",
                    )


def _averages(optimizer: Optimizer) -> bool:
    """Whether an optimizer keeps something from step to step."""
    momentum = optimizer.arguments.get("momentum", optimizer.arguments.get("#2"))
    return optimizer.name != "SGD" or (momentum is not None and not is_constant(momentum, 0, 0.0))


def _options(optimizer: Optimizer) -> dict[str, Hashable]:
    """What an optimizer is told besides its parameters: an iteration may ask for another."""
    return {name: each.key for name, each in optimizer.arguments.items() if name not in ("#0", "params")}
