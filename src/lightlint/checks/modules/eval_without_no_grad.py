from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.loops import LoopKind
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_before

_GRADIENTS = re.compile(r"grad|backward|attack|adversar|saliency|attribut|perturb|adapt", re.IGNORECASE)

_LOADER = re.compile(r"loader$", re.IGNORECASE)


class EvalWithoutNoGrad(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        calls = self.tree.own(function.body, cst.Call)
        modes = [call for call in calls if self.names.method(call) == "eval" and not call.args]
        if not modes or self._needs_gradients(function):
            return
        for mode in modes:
            model = self.names.key(mode.func.value) if isinstance(mode.func, cst.Attribute) else ""
            passes = [call for call in calls if model and self.names.key(call.func) == model]
            passes = [
                call for call in passes if self._is_per_batch(call) and self._is_evaluated(function, mode, call, model)
            ]
            if passes and not self.facts.gradients.may_be_off(passes[0]):
                self.report(
                    passes[0],
                    f"`{model}` is evaluated with gradients recorded: `eval()` does not turn them off",
                    repair=self._repair(function, passes[0]),
                )
                return

    def _needs_gradients(self, function: cst.FunctionDef) -> bool:
        """Whether something in the function, or in what it calls, may be after gradients."""
        words = {
            name.value for body in self.facts.steps.bodies(function.body) for name in self.tree.within(body, cst.Name)
        }
        return any(_GRADIENTS.search(word) for word in {*words, function.name.value})

    def _is_per_batch(self, call: cst.Call) -> bool:
        loops = self.tree.loops(call)
        if not loops or not isinstance(loops[0], cst.For):
            return False
        named = bool(_LOADER.search(self.names.key(self.values.iterated(loops[0].iter))))
        return named or self.loops.kind(loops[0]) is LoopKind.BATCH

    def _is_evaluated(self, function: cst.FunctionDef, mode: cst.Call, call: cst.Call, model: str) -> bool:
        """Whether every way to the forward pass leads through `eval()`, and none through `train()` after it; and whether
        some code of the file calls the function, so that its callers are in sight."""
        trains = [
            each
            for each in self.tree.own(function.body, cst.Call)
            if self.names.method(each) == "train" and isinstance(each.func, cst.Attribute)
            if self.names.key(each.func.value) == model
        ]
        flow = self.facts.flow(function)
        again = any(flow.reaches(each, [call], avoiding=[mode]) for each in trains)
        return flow.always_before(call, [mode]) and not again and bool(self.facts.steps.calls_of.get(function))

    def _repair(self, function: cst.FunctionDef, call: cst.Call) -> Repair | None:
        if self.names.written_in("torch", self.tree.module) != "torch" or function.asynchronous is not None:
            return None
        draft = insert_before(self.code, function, "@torch.no_grad()")
        return Repair("record no gradients in the function", draft, Applicability.UNSAFE)
