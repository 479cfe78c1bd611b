from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Forward, ModeSet
from lightlint.facts.classes import CALLBACK, MODULE

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_HOOKS = {"validation_step", "test_step", "on_validation_batch_start", "on_test_batch_start"}
_HOOKS |= {"on_validation_epoch_start", "on_test_epoch_start", "on_validation_start", "on_test_start"}
_PHASES = ("val", "test")
_MEANT = re.compile(r"dropout|monte|\bmc|mc_|_mc\b|uncertain|ensemble|bayes|batch_?norm|_bn|bn_", re.IGNORECASE)


class TrainModeInEvalHook(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "train" or not self._turns_on(call):
            return
        function, node = self.tree.function(call), self.tree.enclosing_class(call)
        hook = self.hooks.of(function) if function is not None else None
        if (
            function is None
            or node is None
            or hook is None
            or hook.name not in _HOOKS
            or "train" in self.classes.methods(node)
        ):
            return
        if not self._is_evaluated(func.value, node, function) or self.facts.conditions(call):
            return
        key = self.names.key(func.value)
        calls = self.tree.own(function, cst.Call)
        back = [each for each in calls if self.names.method(each) in {"eval", "train"} and each is not call]
        if self.facts.flow(function).reaches(call, back) or _MEANT.search(self.code.text_of(function)):
            return
        self.report(call, f"`{key}` is in training mode from here on: dropout drops, batch norm learns from this data")

    def _turns_on(self, call: cst.Call) -> bool:
        return not call.args or (len(call.args) == 1 and self.names.constant(call.args[0].value) is True)

    def _is_evaluated(self, receiver: cst.BaseExpression, node: cst.ClassDef, function: cst.FunctionDef) -> bool:
        """Whether an expression is the module that is evaluated, or a part of it that the function runs."""
        if self.classes.is_self(receiver):
            return self.classes.is_a(node, MODULE)
        if isinstance(receiver, cst.Name):
            return receiver.value == "pl_module" and self.classes.is_a(node, CALLBACK)
        if not isinstance(receiver, cst.Attribute) or not self.classes.is_self(receiver.value):
            return False
        key = self.names.key(receiver)
        runs = any(self.names.key(each.func) == key for each in self.tree.own(function, cst.Call))
        return self.classes.is_a(node, MODULE) and runs

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules that are put in training mode while Lightning evaluates, and run in it."""
        for path in entry.paths:
            runs = [event for event in path.of(Forward) if event.where.phase in _PHASES and event.training]
            for event in path.of(ModeSet):
                asked = event.training and event.where.phase in _PHASES and not event.module.escaped
                if not asked or event.where.conditions or self._is_meant(event):
                    continue
                inside = event.module.modules()
                back = [
                    e for e in path.of(ModeSet) if not e.training and e.where.phase in _PHASES and e.time > event.time
                ]
                if any(each.module in inside or event.module in each.module.modules() for each in back):
                    continue
                if any(
                    run.module in inside and (run.by_mode or not run.module.children()) and run.time > event.time
                    for run in runs
                ):
                    message = "this is in training mode from here on: dropout drops, batch norm learns from this data"
                    yield Fault.at(event, message)

    def _is_meant(self, event: ModeSet) -> bool:
        """Whether the hook speaks of what a module in training mode is wanted for."""
        first, last = self.facts.rehearsed.around(event.site[1])
        lines = self.facts.source.text.splitlines()[first - 1 : last]
        return any(map(_MEANT.search, lines))
