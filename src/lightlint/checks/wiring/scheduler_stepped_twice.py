from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured, ScheduleStepped
from lightlint.facts.bindings import Kind
from lightlint.facts.classes import MODULE
from lightlint.facts.hooks import Owner
from lightlint.values.core import Class, Function

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.training import Module

_NOT_WHILE_TRAINING = ("validation", "test", "predict")


class SchedulerSteppedTwice(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        node = self.tree.enclosing_class(call)
        if not isinstance(func, cst.Attribute) or func.attr.value != "step" or not self.classes.is_a(node, MODULE):
            return
        if node is None or self.facts.training.automatic(node) is not True or not self._runs_in_training(call):
            return
        if self.classes.has_method(node, "lr_scheduler_step") or not self._hands_over(node):
            return
        if self._is_taken_from_trainer(func.value) or self._is_handed_over(node, func.value):
            self.report(call, "the Trainer steps this scheduler too: it goes through its schedule twice as fast")

    def _runs_in_training(self, call: cst.Call) -> bool:
        hooks = self.hooks.around(call)
        return bool(hooks) and all(
            hook.owner is Owner.MODULE and not any(word in hook.name for word in _NOT_WHILE_TRAINING) for hook in hooks
        )

    def _hands_over(self, node: cst.ClassDef) -> bool:
        """Whether every way through `configure_optimizers` gives the Trainer a scheduler."""
        returned = self.facts.configured.of_class(node)
        return bool(returned) and all(each.schedulers for each in returned) and not self.facts.configured.is_free

    def _is_taken_from_trainer(self, receiver: cst.BaseExpression) -> bool:
        """`self.lr_schedulers()`, or a name bound to it, an item of it or a loop over it."""
        if isinstance(receiver, cst.Subscript):
            return self._is_taken_from_trainer(receiver.value)
        if isinstance(receiver, cst.Call):
            called = receiver.func
            return (
                isinstance(called, cst.Attribute)
                and called.attr.value == "lr_schedulers"
                and self.classes.is_self(called.value)
            )
        if isinstance(receiver, cst.Name):
            bound = self.facts.reaching.bindings(receiver)
            kinds = all(each.kind in {Kind.ASSIGN, Kind.LOOP} and each.value is not None for each in bound)
            return (
                bool(bound) and kinds and all(each.value and self._is_taken_from_trainer(each.value) for each in bound)
            )
        return False

    def _is_handed_over(self, node: cst.ClassDef, receiver: cst.BaseExpression) -> bool:
        """Whether an attribute holds the one scheduler that `configure_optimizers` returns."""
        if not isinstance(receiver, cst.Attribute) or not self.classes.is_self(receiver.value):
            return False
        own = {origin.call for origin in self.values.origins(receiver)}
        given = {
            origin.call
            for returned in self.facts.configured.of_class(node)
            for scheduler in returned.schedulers
            for origin in scheduler.origins
        }
        return bool(own) and None not in own and own <= given

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for path in entry.paths:
            handed = [
                each.schedule
                for event in path.of(Configured)
                if event.automatic and not _has(event.module, "lr_scheduler_step")
                for each in event.schedules
            ]
            for event in path.of(ScheduleStepped):
                if (
                    not event.implicit
                    and event.where.phase == "train"
                    and event.where.hook
                    and event.schedule in handed
                ):
                    yield Fault.at(
                        event, "the Trainer steps this scheduler too: it goes through its schedule twice as fast"
                    )


def _has(module: Module, method: str) -> bool:
    return isinstance(module.cls, Class) and isinstance(module.cls.find(method), Function)
