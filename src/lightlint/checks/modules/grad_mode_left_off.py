from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Called
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_DEPTH = 4


class GradModeLeftOff(Check):
    def visit_Expr(self, node: cst.Expr) -> None:
        call = node.value
        if not self._sets(call) or not self._is_off(call) or self._comes_back():
            return
        if self._comes_before_backward(call, 0):
            self.report(
                call, "nothing turns autograd on again: the next iteration's `backward()` finds no graph and raises"
            )

    def _sets(self, node: cst.CSTNode) -> TypeGuard[cst.Call]:
        return isinstance(node, cst.Call) and self.names.of(node.func) == "torch.set_grad_enabled"

    def _is_off(self, call: cst.Call) -> bool:
        mode = self.names.argument(call, "mode", 0)
        return mode is not None and self.names.constant(mode.value) is False

    def _comes_back(self) -> bool:
        """Whether something in the file turns autograd on, or may."""
        if any(self.names.of(name) == "torch.enable_grad" for name in self.tree.all(cst.Attribute, cst.Name)):
            return True
        return any(self._sets(call) and not self._is_off(call) for call in self.tree.all(cst.Call))

    def _comes_before_backward(self, node: cst.Call, depth: int) -> bool:
        """Whether a loop comes to a backward pass again behind a node, here or around the calls of its function."""
        owner = self.tree.owner(node)
        if not self._is_steady(node):
            return False
        for loop in self.tree.loops(node):
            passes = self.facts.steps.runs(loop.body, self._is_pass)
            if passes:
                return self.facts.flow(owner).reaches_in_later_iteration(loop, node, passes)
        if depth >= _DEPTH or not isinstance(owner, cst.FunctionDef) or owner.decorators:
            return False
        return any(self._comes_before_backward(call, depth + 1) for call in self.facts.steps.calls_of.get(owner, ()))

    def _is_pass(self, call: cst.Call) -> bool:
        return self.loops.is_backward(call) and self.names.method(call) == "backward" and not call.args

    def _is_steady(self, node: cst.Call) -> bool:
        """Whether no test stands around a node but one for every n-th iteration."""
        for above in self.tree.ancestors(node):
            if isinstance(above, (cst.FunctionDef, cst.For, cst.While)):
                return True
            if isinstance(above, (cst.With, cst.Lambda)):
                return False
            if isinstance(above, cst.If):
                operations = self.tree.within(above.test, cst.BinaryOperation)
                if not any(isinstance(each.operator, cst.Modulo) for each in operations):
                    return False
        return True

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Backward passes of losses without a graph behind a call that turned autograd off for good."""
        for path in entry.paths:
            switches = [event for event in path.of(Called) if event.path == "torch.set_grad_enabled"]
            for event in path.of(Backward):
                before = [each for each in switches if each.time < event.time]
                if not before or event.where.grad or event.where.phase or event.loss is None or event.loss.escaped:
                    continue
                off = is_constant(before[-1].argument("mode", 0), False) and not event.loss.requires_grad
                once = any(
                    "periodic" in each.traits and "%" not in repr(each.key) for each in before[-1].where.conditions
                )
                if off and not once and not any("no_grad" in call.function.flags for call in event.where.calls):
                    message = (
                        "nothing turns autograd on again: the next iteration's `backward()` finds no graph and raises"
                    )
                    yield Fault.at(before[-1], message)
