from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.training import ENTRY_POINTS

_WORDS = {"enable_checkpointing": False, "fast_dev_run": True, "barebones": True}


class TestBestWithoutCheckpoint(Check):
    def visit_Call(self, call: cst.Call) -> None:
        path = self.names.argument(call, "ckpt_path")
        if path is None or self.names.constant(path.value) != "best" or self.names.method(call) not in ENTRY_POINTS:
            return
        run = next((each for each in self.facts.training.runs if each.call is call), None)
        if run is None or run.trainer is None or run.entry == "fit":
            return
        for keyword, value in _WORDS.items():
            given = self.names.argument(run.trainer, keyword)
            if given is not None and self.names.constant(given.value) is value:
                self.report(path, f'`ckpt_path="best"`, but the Trainer keeps no checkpoint: `{keyword}={value}`')
                return
