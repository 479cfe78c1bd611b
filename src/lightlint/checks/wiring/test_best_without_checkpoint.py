from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.facts.training import ENTRY_POINTS
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

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

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for method in sorted(ENTRY_POINTS - {"fit"}):
            for event in entry.calls.get(f".{method}", ()):
                trainer = event.receiver
                if trainer is None or trainer.kind != "trainer" or not is_constant(event.argument("ckpt_path"), "best"):
                    continue
                off = (word for word, value in _WORDS.items() if is_constant(trainer.arguments.get(word), value))
                keyword = next(off, None)
                if keyword is not None:
                    message = f'`ckpt_path="best"`, but the Trainer keeps no checkpoint: `{keyword}={_WORDS[keyword]}`'
                    yield Fault.of(event, message)
