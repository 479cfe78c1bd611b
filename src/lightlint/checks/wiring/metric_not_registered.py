from __future__ import annotations

import libcst as cst

from lightlint.check import Check


class MetricNotRegistered(Check):
    def visit_Call(self, call: cst.Call) -> None:
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

    def _is_metric(self, value: cst.CSTNode) -> bool:
        """Whether an expression makes a torchmetrics object that is not kept anywhere."""
        name = self.names.call(value) or ""
        assign = self.tree.parent(value)
        targets = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else []
        kept = any(not isinstance(each, cst.Name) for each in targets)
        return name.startswith("torchmetrics.") and name.rpartition(".")[2][:1].isupper() and not kept
