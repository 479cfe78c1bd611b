from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, CalledUnknown, Differentiated, Event
from lightlint.facts.classes import MODULE

# what runs a step in inference mode: `fit` validates under `no_grad`
if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_ENTRIES = {"validation_step": "validate", "test_step": "test", "predict_step": "predict"}
_GRADS = {"torch.autograd.grad", "torch.autograd.backward"}
_SWITCHES = {"enable_grad", "set_grad_enabled", "inference_mode"}


class GradInEvalHook(Check):
    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        if not self.classes.is_a(node, MODULE) or not self.facts.optimization.family(node):
            return
        reported: set[cst.Call] = set()
        for hook in _ENTRIES:
            function = self.classes.method(node, hook)
            if function is None or self.tree.class_of(function) is not node:
                continue
            for call, enabled in self._gradients(function):
                if call not in reported and self._fails(node, hook, call, enabled=enabled):
                    reported.add(call)
                    self._report(call, hook, enabled=enabled)

    def _report(self, call: cst.Call, hook: str, *, enabled: bool) -> None:
        name = self.code.text_of(call.func)
        if enabled:
            what = f"`{name}` runs in `{hook}` under `inference_mode`, which `enable_grad` does not undo: it raises"
        else:
            what = f"`{name}` runs in `{hook}`, where Lightning turns gradients off: it raises"
        self.report(call, what)

    def _gradients(self, hook: cst.FunctionDef) -> list[tuple[cst.Call, bool]]:
        """The gradients that a hook takes for sure, itself or through functions, and whether autograd is turned on there."""
        found: list[tuple[cst.Call, bool]] = []
        pending = [(hook, self._is_enabled(hook))]
        seen = {hook}
        for function, enabled in pending:
            for call in self.tree.own(function.body, cst.Call):
                if self.facts.conditions(call) or self._is_tried(call):
                    continue
                on = enabled or self._is_under(call) or self._is_switched_on(call, function)
                if self.names.of(call.func) in _GRADS or self.facts.optimization.raw_backward(call) is not None:
                    found.append((call, on))
                callees = self.facts.optimization.callees(call) or self.facts.results.functions(call)
                for callee in callees if len(callees) == 1 else ():
                    if callee not in seen:
                        seen.add(callee)
                        pending.append((callee, on or self._is_enabled(callee)))
        return found

    def _is_tried(self, call: cst.Call) -> bool:
        return any(isinstance(each, cst.Try) for each in self.tree.ancestors(call))

    def _is_enabled(self, function: cst.FunctionDef) -> bool:
        return any(self._enables(each.decorator) for each in function.decorators)

    def _is_under(self, call: cst.Call) -> bool:
        withs = [each for each in self.tree.ancestors(call) if isinstance(each, cst.With)]
        return any(self._enables(item.item) for each in withs for item in each.items)

    def _is_switched_on(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Whether a statement of the function before a call turns gradients on: `torch.set_grad_enabled(True)`."""
        switches = [each for each in self.tree.own(function.body, cst.Call) if self._enables(each)]
        return any(
            isinstance(self.tree.parent(each), cst.Expr) and self.tree.order(each) < self.tree.order(call)
            for each in switches
        )

    def _enables(self, expression: cst.BaseExpression) -> bool:
        if isinstance(expression, cst.Call):
            name = self.names.call(expression)
            given = expression.args[0].value if expression.args else None
            return name == "torch.enable_grad" or (
                name == "torch.set_grad_enabled" and self.names.constant(given) is True
            )
        return self.names.of(expression) == "torch.enable_grad"

    def _fails(self, node: cst.ClassDef, hook: str, gradient: cst.Call, *, enabled: bool) -> bool:
        """Whether gradients surely are off in a hook: by Lightning, or in spite of `enable_grad` by inference mode."""
        family = self.facts.optimization.family(node)
        inside = self.tree.enclosing_class(gradient) in family
        parts = [each for part in family for each in self.tree.within(part, cst.Name)]
        words = {each.value for each in (parts if inside else self.tree.all(cst.Name))}
        if not enabled and not words.isdisjoint(_SWITCHES):
            return False
        if not enabled and all(map(self._is_in_sight, self.facts.optimization.calls(node, hook))):
            return True
        name = f"{self.names.module}.{self.names.qualified(node)}"
        runs = [each for each in self.facts.training.runs if each.module == name and each.entry == _ENTRIES[hook]]
        known = "inference_mode" not in words and self.facts.lightning.surely_at_least("1.8")
        return known and bool(runs) and all(self._is_inference(each.trainer) for each in runs)

    def _is_in_sight(self, call: cst.Call) -> bool:
        """Whether a call surely turns no gradients on: it runs no module, or one of torch's."""
        func = call.func
        if self.names.key(func).startswith("self.") and self.hooks.callee(call) is None:
            origins = self.values.origins(func)
            known = bool(origins) and all(each.name.startswith("torch.nn.") for each in origins)
            return known or self.names.method(call) in {"log", "log_dict", "print"}
        return True

    def _is_inference(self, trainer: cst.Call | None) -> bool:
        """Whether a Trainer evaluates in inference mode: it is not told otherwise, by argument or by its strategy."""
        if trainer is None or self.names.has_star(trainer):
            return False
        given = {arg.keyword.value for arg in trainer.args if arg.keyword is not None}
        return given.isdisjoint({"inference_mode", "strategy", "num_nodes"})

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients that are taken while Lightning evaluates, which has turned them off."""
        hidden = {(event.where.phase, event.where.calls[:1]) for event in entry.of(CalledUnknown)}
        for event in (*entry.of(Backward), *entry.of(Differentiated)):
            where = event.where
            if (where.phase, where.calls[:1]) in hidden:
                continue  # code out of sight may turn them on
            taken = where.phase in ("val", "test") and not where.grad and all(each.known for each in where.conditions)
            if taken and not self._is_caught(event):
                message = "this runs in an evaluation of Lightning, where gradients are turned off: it raises"
                yield Fault.at(event, message)

    def _is_caught(self, event: Event) -> bool:
        """Whether a `try` around a call may be there for its error."""
        span = self.facts.rehearsed.span(event.site)
        calls = [each for each in self.tree.all(cst.Call) if self.facts.positions.span(each) == span]
        above = [up for each in calls for up in self.tree.ancestors(each) if isinstance(up, cst.Try)]
        return not calls or any(up.handlers for up in above)
