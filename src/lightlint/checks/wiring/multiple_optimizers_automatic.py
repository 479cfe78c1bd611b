from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.configured import Part, Returned


class MultipleOptimizersAutomatic(Check):
    def visit_Module(self, module: cst.Module) -> None:
        if self.facts.lightning.may_be_below("2.0") or self.facts.configured.is_free:
            return
        seen: set[cst.CSTNode] = set()
        for node, method in self.facts.configured.methods:
            step = self.classes.method(node, "training_step")
            if self.facts.training.automatic(node) is not True or not self.classes.has_method(node, "training_step"):
                continue
            if step is not None and "optimizer_idx" in {each.name.value for each in step.params.params}:
                continue  # a step of Lightning 1, which is another rule's
            for returned in self.facts.configured.of(method):
                if self._are_several(returned) and returned.statement not in seen:
                    seen.add(returned.statement)
                    count = len(returned.optimizers or ())
                    self.report(returned.statement, f"{count} optimizers in automatic optimization: Lightning 2 raises")

    def _are_several(self, returned: Returned) -> bool:
        """Whether this is two optimizers or more, in a shape that Lightning takes."""
        if len(returned.optimizers or ()) < 2:
            return False
        of_one_kind = returned.parts and set(returned.parts) in ({Part.OPTIMIZER}, {Part.DICT})
        return bool(of_one_kind) or (len(returned.parts) == 2 and returned.parts[0] is Part.LIST)
