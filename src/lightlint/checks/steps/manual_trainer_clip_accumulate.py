from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.compat import is_versioned
from lightlint.facts.keywords import Keyword

_ALLOWED = {"gradient_clip_val": 0, "accumulate_grad_batches": 1}


class ManualTrainerClipAccumulate(Check):
    def visit_Call(self, call: cst.Call) -> None:
        run = next((each for each in self.facts.training.runs if each.call is call), None)
        if run is None or run.entry != "fit" or run.trainer is None or is_versioned(self.facts, call):
            return
        if not self.facts.optimization.name_is_manual(run.module) or run.module is None:
            return
        for keyword, allowed in _ALLOWED.items():
            given = self._given(run.trainer, keyword)
            value = self.names.constant(given.value) if given is not None else None
            if (
                given is not None
                and isinstance(value, (int, float))
                and not isinstance(value, bool)
                and value > allowed
            ):
                name = run.module.rpartition(".")[2]
                self.report(given.node, f"`{keyword}` with `{name}`, which optimizes by hand: `fit` raises")

    def _given(self, trainer: cst.Call, name: str) -> Keyword | None:
        """What a Trainer surely gets under a keyword, also in a `**dict` that nothing may change on its way there."""
        direct = self.names.argument(trainer, name)
        if direct is not None:
            return Keyword(name, direct, direct.value)
        for arg in trainer.args:
            held = self.facts.dicts.held(arg.value) if arg.star == "**" else None
            if held is not None and name in held.values:
                return Keyword(name, held.keys[name], held.values[name])
        return None
