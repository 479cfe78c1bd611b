from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, GradientsSwitched, OptimizerMade
from lightlint.explore.queries import in_sight
from lightlint.facts.classes import NN_MODULE
from lightlint.facts.freezing import switch
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_OPTIMIZER = "torch.optim.Optimizer"
_TAKING_IN = {"add_param_group", "unfreeze_and_add_param_group", "setup_optimizers", "configure_optimizers"}
# hooks of Lightning that run when the optimizers are there
_TRAINING = {
    "on_train_start", "on_train_epoch_start", "on_train_epoch_end", "on_train_batch_start", "on_train_batch_end",
    "training_step", "on_validation_epoch_end",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Switch:
    """A place that freezes or thaws all parameters of a module, named as there."""

    module: str
    trains: bool
    node: cst.CSTNode


class ThawedAfterOptimizer(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if not self.classes.name_is_a(self.names.call(call), _OPTIMIZER):
            return
        params = self.names.argument(call, "params", 0)
        model = self._filtered(params.value) if params is not None else ""
        if params is None or not model or self._takes_in(call):
            return
        for thaw in self._switches():
            if (
                thaw.trains
                and self._is_within(thaw.module, model)
                and self._is_late(thaw, call)
                and self._was_frozen(thaw, call)
            ):
                row = f"`{thaw.module}` is thawed"
                self.report(params, f"{row} after this took what was not frozen: its parameters are never updated")
                return

    def _filtered(self, params: cst.BaseExpression) -> str:
        """The module of which an expression gives the parameters that are not frozen; empty where it is another one."""
        if isinstance(params, cst.Name):
            bound = self.names.bindings.lookup(params)
            value = bound[0].value if len(bound) == 1 and not bound[0].path else None
            return self._filtered(value) if isinstance(value, cst.BaseExpression) and value is not params else ""
        if self.names.call(params) in {"builtins.filter", "builtins.list"} and isinstance(params, cst.Call):
            if len(params.args) == 1:
                return self._filtered(params.args[0].value)
            test = params.args[0].value
            asks = isinstance(test, cst.Lambda) and self._asks(test.body)
            return self._module(params.args[1].value) if asks else ""
        if isinstance(params, cst.ListComp | cst.GeneratorExp) and params.for_in.inner_for_in is None:
            asks = len(params.for_in.ifs) == 1 and self._asks(params.for_in.ifs[0].test)
            return self._module(params.for_in.iter) if asks else ""
        return ""

    def _asks(self, test: cst.BaseExpression) -> bool:
        return isinstance(test, cst.Attribute) and test.attr.value == "requires_grad"

    def _module(self, parameters: cst.BaseExpression) -> str:
        """`model` of `model.parameters()`."""
        if self.names.method(parameters) not in {"parameters", "named_parameters"}:
            return ""
        func = parameters.func if isinstance(parameters, cst.Call) else None
        return self.names.key(func.value) if isinstance(func, cst.Attribute) else ""

    def _takes_in(self, call: cst.Call) -> bool:
        """Whether the file makes another optimizer, or adds parameters to one."""
        others = [each for each in self.tree.all(cst.Call) if each is not call]
        return any(
            self.names.method(each) in _TAKING_IN or self.classes.name_is_a(self.names.call(each), _OPTIMIZER)
            for each in others
        )

    def _switches(self) -> Iterator[_Switch]:
        """What freezes or thaws a module, or in a loop all parameters of one."""
        for node in self.tree.all(cst.Call, cst.Assign):
            made = switch(self.facts, node)
            if made is not None and made.state in {"True", "False"} and not self._picks(node, made.module):
                yield _Switch(self.names.key(made.module), made.state == "True", node)

    def _picks(self, node: cst.CSTNode, module: cst.BaseExpression) -> bool:
        """Whether a loop over a module's parameters switches some of them only."""
        loop = next(iter(self.tree.loops(node)), None)
        if not isinstance(loop, cst.For) or not self.tree.contains(loop.iter, module):
            return False
        tests = [test for test, _ in self.facts.conditions(node) if self.tree.contains(loop.body, test)]
        return bool(tests) or self.names.method(loop.iter) != "parameters"

    def _is_within(self, module: str, model: str) -> bool:
        return module == model or module.startswith((f"{model}.", f"{model}["))

    def _is_late(self, thaw: _Switch, call: cst.Call) -> bool:
        """Whether a thaw comes when the optimizer has its parameters, and no later one gets them."""
        method, other = self.tree.function(call), self.tree.function(thaw.node)
        if method is other:
            together = set(map(id, self.tree.loops(call))) & set(map(id, self.tree.loops(thaw.node)))
            return not together and self.tree.order(call) < self.tree.order(thaw.node)
        if method is None or other is None or method.name.value != "configure_optimizers":
            return False
        owner = self.tree.class_of(method)
        same = owner is not None and self.tree.class_of(other) is owner and self.classes.is_a(owner, NN_MODULE)
        return same and other.name.value in _TRAINING

    def _was_frozen(self, thaw: _Switch, call: cst.Call) -> bool:
        """Whether the same module, or one around it, was frozen where the optimizer was made."""
        for freeze in self._switches():
            if freeze.trains or not self._is_within(thaw.module, freeze.module):
                continue
            function = self.tree.function(freeze.node)
            if function is self.tree.function(call):
                if self.tree.order(freeze.node) < self.tree.order(call):
                    return True
            elif function is not None and function.name.value == "__init__":
                return self.tree.class_of(function) is self.tree.class_of(self.tree.owner(call))
        return False

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parameters that are frozen where an optimizer takes what is not, are thawed later, and get into no optimizer."""
        for path in entry.paths:
            made, switches = path.of(OptimizerMade), path.of(GradientsSwitched)
            held = {each for event in made for each in event.optimizer.parameters}
            trained = {each for event in path.of(Backward) for each in event.parameters}
            for event in made:
                if not in_sight([event.optimizer]) or not event.optimizer.parameters:
                    continue
                late = {p for each in switches if each.on and each.time > event.time for p in each.parameters}
                roots = {root for p in event.optimizer.parameters for root in _around(path, p)}
                lost = [p for p in late - held if not p.escaped and (p in trained or roots & _around(path, p))]
                if any(_is_frozen(switches, p, event) for p in lost):
                    message = "a module is thawed after this took what was not frozen: its parameters are never updated"
                    yield Fault.at(event, message)


def _around(path: Path, parameter: Tensor) -> set[Module]:
    """The modules that a parameter belongs to."""
    modules = [each for each in path.machine.objects if isinstance(each, Module)]
    return {each for each in modules if parameter in each.parameters()}


def _is_frozen(switches: list[GradientsSwitched], parameter: Tensor, made: OptimizerMade) -> bool:
    """Whether a parameter was frozen when an optimizer was made."""
    before = [each for each in switches if each.time < made.time and parameter in each.parameters]
    return bool(before) and not before[-1].on
