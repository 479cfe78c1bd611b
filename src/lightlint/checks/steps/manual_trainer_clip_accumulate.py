from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.compat import is_versioned

_ALLOWED = {"gradient_clip_val": 0, "accumulate_grad_batches": 1}


class ManualTrainerClipAccumulate(Check):
    def visit_Call(self, call: cst.Call) -> None:
        run = next((each for each in self.facts.training.runs if each.call is call), None)
        if run is None or run.entry != "fit" or run.trainer is None or is_versioned(self.facts, call):
            return
        if not self.facts.optimization.name_is_manual(run.module) or run.module is None:
            return
        for keyword, allowed in _ALLOWED.items():
            given = self.names.argument(run.trainer, keyword)
            value = self.names.constant(given.value) if given is not None else None
            if (
                given is not None
                and isinstance(value, (int, float))
                and not isinstance(value, bool)
                and value > allowed
            ):
                name = run.module.rpartition(".")[2]
                self.report(given, f"`{keyword}` with `{name}`, which optimizes by hand: `fit` raises")
