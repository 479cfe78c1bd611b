from __future__ import annotations

import libcst as cst

from lightlint.check import Check


class GlobalStepMultipleOptimizers(Check):
    def visit_Call(self, call: cst.Call) -> None:
        run = next((each for each in self.facts.training.runs if each.call is call), None)
        if run is None or run.entry != "fit" or run.trainer is None:
            return
        node = self.classes.local(run.module)
        given = self.names.argument(run.trainer, "max_steps")
        if node is None or given is None or not self.facts.optimization.is_manual(node):
            return
        value = self.names.constant(given.value)
        steps = self._steps(node)
        if isinstance(value, int) and value > 0 and steps > 1 and self.facts.lightning.surely_at_least("1.6"):
            self.report(
                given, f"`max_steps` counts every optimizer step, and `{node.name.value}` makes {steps} a batch"
            )

    def _steps(self, node: cst.ClassDef) -> int:
        """How many optimizers each batch surely steps: those stepped under no test and in no loop, by name."""
        keys: set[str] = set()
        for call in self.facts.optimization.calls(node):
            func = call.func
            plain = not self.tree.loops(call) and not self.facts.conditions(call)
            is_step = isinstance(func, cst.Attribute) and func.attr.value == "step"
            if (
                is_step
                and isinstance(func, cst.Attribute)
                and plain
                and self.facts.optimization.from_optimizers(func.value)
            ):
                keys.add(self.names.key(func.value))
        return len(keys)
