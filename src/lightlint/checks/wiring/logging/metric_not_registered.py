from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.finding import Tier

_ON_CPU = {"cpu", "item", "tolist", "to", "numpy", "from_numpy", "as_tensor", "tensor"}
_STEPS = {"training_step", "validation_step", "test_step"}


class MetricNotRegistered(Check):
    def visit_Call(self, call: cst.Call) -> None:
        self._judge_use(call)
        if self.names.method(call) != "log" or not self.facts.logs.is_log(call):
            return
        given = self.names.argument(call, "value", 1)
        if given is None or self.names.argument(call, "metric_attribute") or self.names.has_star(call):
            return
        sources = self.facts.reaching.sources(given.value)
        function = self.tree.function(call)
        if all(self._is_metric(each) and self.tree.function(each) is function for each in sources):
            what = f"the metric `{given.value.value}`" if isinstance(given.value, cst.Name) else "the metric"
            self.report(given, f"{what} is no attribute of the module: Lightning cannot find it and raises")

    def _judge_use(self, call: cst.Call) -> None:
        """Report a metric that a step makes, and calls with what lies on the module's device."""
        used = (
            call.func.value if isinstance(call.func, cst.Attribute) and call.func.attr.value == "update" else call.func
        )
        found = self.names.bindings.lookup(used) if isinstance(used, cst.Name) else []
        made = found[0].value if len(found) == 1 and not found[0].path else used
        function = self.tree.function(call)
        if not isinstance(made, cst.Call) or not self._is_metric(made) or self.tree.function(made) is not function:
            return
        hook = next((each for each in self.hooks.around(call) if each.name in _STEPS), None)
        if (
            function is None
            or hook is None
            or not call.args
            or self._is_on_cpu(call)
            or self._is_logged(used, function)
        ):
            return
        if made is used or not self._is_used_before(call, used, function):
            name = (self.names.call(made) or "").rpartition(".")[2]
            message = (
                f"`{name}` is made anew on the CPU in each `{hook.name}`: it refuses what is on the module's device"
            )
            self.report(made, message, tier=Tier.WARNING)

    def _is_on_cpu(self, call: cst.Call) -> bool:
        """Whether what a call is given may be on the CPU: moved there, or all of a Trainer that runs there."""
        given = [source for arg in call.args for source in (arg.value, *self.facts.reaching.sources(arg.value))]
        moved = any(self.names.method(each) in _ON_CPU for value in given for each in self.tree.within(value, cst.Call))
        places = [self.names.argument(each, "accelerator") for each in self.facts.training.trainers]
        return moved or any(each is not None and self.names.constant(each.value) == "cpu" for each in places)

    def _is_logged(self, used: cst.CSTNode, function: cst.FunctionDef) -> bool:
        logs = [call for call in self.tree.own(function, cst.Call) if self.facts.logs.is_log(call)]
        return any(self.names.key(arg.value) == self.names.key(used) != "" for call in logs for arg in call.args)

    def _is_used_before(self, call: cst.Call, used: cst.CSTNode, function: cst.FunctionDef) -> bool:
        reads = [each for each in self.tree.own(function, cst.Name) if each.value == self.names.key(used)]
        return any(self.tree.order(each) < self.tree.order(used) for each in reads[1:])

    def _is_metric(self, value: cst.CSTNode) -> bool:
        """Whether an expression makes a torchmetrics object that is not kept anywhere."""
        name = self.names.call(value) or ""
        assign = self.tree.parent(value)
        targets = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else []
        kept = any(not isinstance(each, cst.Name) for each in targets)
        return name.startswith("torchmetrics.") and name.rpartition(".")[2][:1].isupper() and not kept
