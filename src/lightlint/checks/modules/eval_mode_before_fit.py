from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import FitStarted, ModeSet
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_after, insert_before

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_SETS_MODE = re.compile(r"\.train\(|def train\b")


class EvalModeBeforeFit(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.method(call) == "from_pretrained":
            self._check_pretrained(call)
        run = next((each for each in self.facts.training.runs if each.call is call), None)
        model = self.names.argument(call, "model", 0)
        if run is None or run.entry != "fit" or run.module is None or model is None:
            return
        name = model.value
        if (
            not isinstance(name, cst.Name)
            or not self.facts.lightning.may_be_at_least("2.2")
            or self._sets_mode(run.module)
        ):
            return
        owner = self.tree.owner(call)
        calls = [each for each in self.tree.own(owner, cst.Call) if each is not call]
        evals = [each for each in calls if self._switches(each, name.value, "eval")]
        evals += [each for each in calls if self._is_bound(each, name)]
        others = [each for each in calls if each not in evals and self._switches(each, name.value, "train")]
        sites = [each.site for each in self.names.bindings.lookup(name)]
        rebound = [site for site in sites if not any(self._same_statement(site, each) for each in evals)]
        evals = [each for each in evals if set(self.facts.conditions(each)) <= set(self.facts.conditions(call))]
        flow = self.facts.flow(owner)
        if any(flow.reaches(each, [call], avoiding=[*others, *rebound]) for each in evals):
            statement = self.tree.statement(call)
            draft = insert_before(self.code, statement, f"{name.value}.train()") if statement is not None else None
            repair = Repair(f"call `{name.value}.train()`", draft, Applicability.UNSAFE)
            self.report(call, f"`{name.value}` comes to `fit` in eval mode and is trained in it", repair=repair)

    def _check_pretrained(self, call: cst.Call) -> None:
        above, statement = self.tree.parent(call), self.tree.statement(call)
        if not isinstance(above, cst.Assign) or statement is None or not self.facts.lightning.may_be_at_least("2.2"):
            return
        if self.facts.pretrained.is_trained_in_eval(call):
            key = self.names.key(above.targets[0].target)
            repair = Repair(
                f"call `{key}.train()`", insert_after(self.code, statement, f"{key}.train()"), Applicability.UNSAFE
            )
            message = f"`from_pretrained` gives `{key}` in eval mode, and `fit` trains it like that, without dropout"
            self.report(call, message, repair=repair)

    def _is_bound(self, call: cst.Call, name: cst.Name) -> bool:
        """Whether a call is the `.eval()` of `model = Net().eval()`, or of a function that returns a model in that mode."""
        if not any(each.value is call and not each.path for each in self.names.bindings.lookup(name)):
            return False
        callee = self.hooks.callee(call)
        if callee is None or callee.decorators:
            return _is_eval(call)
        returned = self.values.returns(callee)
        return bool(returned) and all(each is not None and self._is_in_eval_mode(each, callee) for each in returned)

    def _is_in_eval_mode(self, value: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        """Whether a function returns a model that it put into eval mode, in the `return` or before."""
        if not isinstance(value, cst.Name):
            return isinstance(value, cst.Call) and _is_eval(value)
        calls = self.tree.own(function, cst.Call)
        evals = [
            each for each in calls if self._switches(each, value.value, "eval") and not self.facts.conditions(each)
        ]
        trains = [each for each in calls if self._switches(each, value.value, "train")]
        rebound = [each.site for each in self.names.bindings.lookup(value)]
        flow = self.facts.flow(function)
        return any(flow.reaches(each, [value], avoiding=[*trains, *rebound]) for each in evals)

    def _same_statement(self, one: cst.CSTNode, other: cst.CSTNode) -> bool:
        return self.tree.statement(one) is self.tree.statement(other)

    def _switches(self, call: cst.Call, name: str, mode: str, depth: int = 0) -> bool:
        """Whether a call sets a model's mode: `model.eval()`, or a function of this file that ends with that."""
        if isinstance(call.func, cst.Attribute) and self.names.key(call.func.value) == name:
            return call.func.attr.value == mode
        callee = self.hooks.callee(call)
        given = [arg for arg in call.args if isinstance(arg.value, cst.Name) and arg.value.value == name]
        if not given or depth > 1:
            return False
        if callee is None:
            return mode == "train" and not (self.names.of(call.func) or "").startswith(
                ("torch.", "builtins.", "lightning.")
            )
        inner = self._parameter(callee, call, name)
        if not inner:
            return mode == "train"
        calls = self.tree.own(callee, cst.Call)
        wanted = [each for each in calls if self._switches(each, inner, mode, depth + 1)]
        undone = [each for each in calls if mode == "eval" and self._switches(each, inner, "train", depth + 1)]
        flow = self.facts.flow(callee)
        return any(flow.reaches(each, [flow.end], avoiding=undone) for each in wanted)

    def _parameter(self, function: cst.FunctionDef, call: cst.Call, name: str) -> str:
        """The parameter of a function that gets a name's value in a call, empty if it is rebound or none."""
        for param in (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params):
            given = self.values.given(function, call, param.name.value)
            if isinstance(given, cst.Name) and given.value == name:
                bound = self.names.bindings.lookup_in(param.name.value, function)
                return param.name.value if len(bound) == 1 else ""
        return ""

    def _sets_mode(self, module: str) -> bool:
        """Whether the module's class sets modes itself, or is out of sight."""
        node = self.classes.local(module)
        if node is not None:
            family = self.facts.optimization.family(node)
            return not family or any(_SETS_MODE.search(self.code.text_of(each)) for each in family)
        text = self.facts.project.text_defining(module, self.facts.path.parent)
        return not text or bool(_SETS_MODE.search(text))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules that come to `fit` in eval mode."""
        for path in entry.paths:
            for event in path.of(FitStarted):
                asked = any(
                    e.module is event.module and not e.training and e.time < event.time for e in path.of(ModeSet)
                )
                put_back = any(e.training and e.time > event.time for e in path.of(ModeSet))
                if asked and not put_back and not event.training and event.by_mode and not event.module.escaped:
                    yield Fault.at(event, "the module comes to `fit` in eval mode and is trained in it")


def _is_eval(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "eval"
