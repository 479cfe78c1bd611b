from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.keywords import keywords
from lightlint.facts.loops import LoopKind
from lightlint.facts.world import TRAINER
from lightlint.finding import Applicability
from lightlint.fixes.edits import drop_statement, remove_argument

_SWITCHES = {"torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly"}
_BLOCKS = {"torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly", *_SWITCHES}
_DEBUG = re.compile(r"debug|test|nan|anomal|repro", re.IGNORECASE)


_MESSAGE = "anomaly detection is on for the whole run: every backward pass is checked"


class AnomalyModeLeftOn(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.call(call)
        if name in _SWITCHES:
            self._check_switch(call)
        elif name == TRAINER:
            self._check_trainer(call)

    def visit_With(self, block: cst.With) -> None:
        """A block around the whole training: not around the few steps in question."""
        for item in block.items:
            call = item.item
            if not isinstance(call, cst.Call) or self.names.call(call) not in _BLOCKS:
                continue
            given = self.names.argument(call, "mode", 0) if self.names.call(call) in _SWITCHES else None
            on = given is None or self.names.constant(given.value) is True
            if on and not self._is_meant(call) and self._trains(block.body):
                self.report(call, _MESSAGE)

    def _trains(self, body: cst.CSTNode) -> bool:
        """Whether a body runs a loop over epochs, or over all batches of a loader, that goes backward in each."""
        loops = [each for part in self.facts.steps.bodies(body) for each in self.tree.own(part, cst.For)]
        return any(
            self.facts.steps.runs(each.body, self.loops.is_backward)
            and (self.loops.kind(each) is LoopKind.EPOCH or self.loops.is_one_pass(each))
            for each in loops
        )

    def _check_switch(self, call: cst.Call) -> None:
        given = self.names.argument(call, "mode", 0)
        statement = self.tree.statement(call)
        if given is None or self.names.constant(given.value) is not True or not isinstance(statement, cst.Expr):
            return
        if not self._is_meant(call):
            repair = Repair("drop the call", drop_statement(self.code, statement), Applicability.UNSAFE)
            self.report(call, _MESSAGE, repair=repair)

    def _check_trainer(self, call: cst.Call) -> None:
        given = [each for each in keywords(self.facts, call) if each.name == "detect_anomaly"]
        if len(given) != 1 or self.names.constant(given[0].value) is not True or self._is_meant(call):
            return
        arg, repair = given[0].node, None
        if isinstance(arg, cst.Arg):
            repair = Repair("drop the argument", remove_argument(self.code, call, arg), Applicability.UNSAFE)
        self.report(arg, _MESSAGE, repair=repair)

    def _is_meant(self, call: cst.Call) -> bool:
        """Whether a test decides about it, or names say that this is no training proper."""
        function = self.tree.function(call)
        tests = [test for test, _ in self.facts.conditions(call) if "__name__" not in self._words(test)]
        around = [function.name.value] if function is not None else []
        named = any(_DEBUG.search(each) for each in (*around, *self.facts.path.name))
        return bool(tests) or named

    def _words(self, node: cst.CSTNode) -> set[str]:
        return {name.value for name in self.tree.within(node, cst.Name)}
