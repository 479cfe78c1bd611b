from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import ClosureDone
from lightlint.facts.lightning.configured import CONFIGURE
from lightlint.facts.lightning.hooks import Hook, Owner
from lightlint.facts.lightning.overrides import taken
from lightlint.facts.objects.classes import MODULE, OPTIMIZER, Classes

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_STEPS_INSIDE_SINCE = "1.0.4"  # before, the closure was there for second-order optimizers only
_UNSCALED = {"32", "32-true", "64", "64-true", "bf16", "bf16-mixed", "bf16-true"}
_PLAIN = ("auto", "ddp", "single_device")


class OptimizerClosureDropped(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        node = self.tree.class_of(function)
        if node is None or not self.facts.lightning.may_be_at_least(_STEPS_INSIDE_SINCE):
            return
        if self.hooks.of(function) == Hook(Owner.MODULE, "optimizer_step"):
            self._override(function, node)
        elif function.name.value == "step" and self.classes.is_a(node, OPTIMIZER):
            self._custom(function, node)

    def _override(self, function: cst.FunctionDef, node: cst.ClassDef) -> None:
        closure = next((each for each in self._parameters(function) if "closure" in each), "")
        if not closure or not self.facts.optimization.is_automatic(node):
            return
        if closure == "second_order_closure" and self.facts.lightning.may_be_below(_STEPS_INSIDE_SINCE):
            return  # what it was called while Lightning stepped outside of it
        runs = self._uses(function, closure)
        if not runs:
            self.report(function.name, f"`optimizer_step` drops `{closure}`, which runs the step and the backward pass")
        elif self._is_one(function) and len(runs) == 1 and self._may_skip(function, runs[0]):
            message = f"`optimizer_step` does not always run `{closure}`: Lightning raises when it does not"
            self.report(function.name, message)

    def _may_skip(self, function: cst.FunctionDef, run: cst.CSTNode) -> bool:
        """Whether a way to the end avoids the one call that runs the closure; tests for a kind of thing decide none."""
        flow = self.facts.flow(function)
        kinds = any(self.names.method(test) in {"isinstance", "hasattr"} for test, _ in self.facts.conditions(run))
        return isinstance(run, cst.Call) and not kinds and flow.reaches(flow.start, [flow.end], avoiding=[run])

    def _custom(self, function: cst.FunctionDef, node: cst.ClassDef) -> None:
        if self._is_stub(function):
            return
        closure = next((each for each in self._parameters(function)[1:2]), "")
        name = f"{node.name.value}.step"
        if self._takes_none(function):
            if not self._may_scale and self._is_trained_automatically(node, plainly=True):
                self.report(function.name, f"`{name}` takes no `closure`, which Lightning gives it: TypeError")
        elif "closure" in closure and not self._uses(function, closure) and self._is_trained_automatically(node):
            self.report(function.name, f"`{name}` drops `{closure}`, in which Lightning runs the training step")

    def _takes_none(self, function: cst.FunctionDef) -> bool:
        """Whether a method surely takes no argument, whatever decorates it."""
        takes = taken(self.facts, function)
        return takes is not None and not (
            takes.positional or takes.keyword_only or takes.takes_rest or takes.takes_keywords
        )

    @property
    def _may_scale(self) -> bool:
        """Whether a Trainer in sight may step optimizers without a closure, behind a gradient scaler or an engine."""
        given = [each.arguments for each in self.facts.world.trainers]
        precisions = {str(each.get("precision", 32)) for each in given}
        return not precisions <= _UNSCALED or any(
            "strategy" in each and not _is_plain(each["strategy"]) for each in given
        )

    def _parameters(self, function: cst.FunctionDef) -> list[str]:
        params = function.params
        return [each.name.value for each in (*params.posonly_params, *params.params, *params.kwonly_params)]

    def _is_one(self, function: cst.FunctionDef) -> bool:
        """Whether the hook is for one optimizer: for several, before Lightning 2, a step may be left out."""
        return "optimizer_idx" not in self._parameters(function)

    def _uses(self, function: cst.FunctionDef, name: str) -> list[cst.CSTNode]:
        """The calls that run the closure or hand it on; another use stands for itself."""
        uses = [each for each in self.tree.within(function.body, cst.Name) if each.value == name]
        return [self._call_around(use, function) or use for use in uses]

    def _call_around(self, use: cst.Name, function: cst.FunctionDef) -> cst.CSTNode | None:
        own = self.tree.own(function.body, cst.Call)
        return next(
            (each for each in self.tree.ancestors(use) if each in own and self.tree.function(use) is function), None
        )

    def _is_stub(self, function: cst.FunctionDef) -> bool:
        return bool(self.tree.own(function.body, cst.Raise)) and not self.tree.own(function.body, cst.For)

    def _is_trained_automatically(self, node: cst.ClassDef, *, plainly: bool = False) -> bool:
        """Whether a LightningModule with automatic optimization configures this optimizer, here or in a file that imports it;
        `plainly` asks for one that leaves the step to Lightning."""
        name = self.names.defined(node)
        for owner, method in self.facts.configured.methods:
            known = self.facts.optimization.is_automatic(owner) and not (plainly and _steps(self.classes, owner))
            if known and any(self.names.call(call) == name for call in self.tree.within(method, cst.Call)):
                return True
        project = self.facts.project
        for path in project.users(self.facts.path, CONFIGURE.name):
            summary = project.summary(path)
            if name not in summary.called:
                continue
            for each, found in summary.classes.items():
                full = f"{project.module_name(path)}.{each}"
                automatic = not self._mentions_flag(full) and CONFIGURE.name in found.methods
                if automatic and self.classes.name_is_a(full, MODULE) and not (plainly and self._may_step(full)):
                    return True
        return False

    def _may_step(self, name: str) -> bool:
        """Whether a module of another file may step its optimizers itself."""
        found = self.facts.of_class(name)
        return found is None or _steps(found[0].classes, found[1])

    def _mentions_flag(self, name: str) -> bool:
        return "automatic_optimization" in self.facts.project.text_defining(name, self.facts.path.parent)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Steps that return without having called the closure, on every path."""
        if not self.facts.lightning.may_be_at_least(_STEPS_INSIDE_SINCE):
            return
        done = [event for event in entry.of(ClosureDone) if len(event.function.node.args.args) > 1]
        for event in done:
            if not any(each.called or each.closure.escaped for each in done if each.site == event.site):
                yield Fault.at(
                    event, "drops the closure, in which Lightning runs the training step and the backward pass"
                )


def _steps(classes: Classes, node: cst.ClassDef) -> bool:
    """Whether a module may have an `optimizer_step` of its own."""
    return not classes.complete(node) or classes.has_method(node, "optimizer_step")


def _is_plain(strategy: object) -> bool:
    return isinstance(strategy, str) and strategy.startswith(_PLAIN)
