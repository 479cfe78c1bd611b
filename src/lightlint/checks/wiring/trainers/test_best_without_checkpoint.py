from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.facts.lightning.training import ENTRY_POINTS
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_WORDS = {"enable_checkpointing": False, "fast_dev_run": True, "barebones": True}


class TestBestWithoutCheckpoint(Check):
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
