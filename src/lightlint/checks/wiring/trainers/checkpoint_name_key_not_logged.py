from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import FitStarted
from lightlint.explore.questions.logged import file_names, listed, logged, spellings_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_GROUP = re.compile(r"\{([^{}:!]*?)[:\}]")  # as `ModelCheckpoint` finds them
_ALWAYS = {"epoch", "step", "global_step", "loss", ""}  # what Lightning has in every release, or had in some


class CheckpointNameKeyNotLogged(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        reads = "callback_metrics" in self.facts.source.text or "logged_metrics" in self.facts.source.text
        if reads or self.facts.lightning.may_be_below("1.5"):
            return
        for fit in entry.of(FitStarted):
            for text, site in file_names(entry, fit):
                groups = dict.fromkeys(_GROUP.findall(text)) if "{{" not in text else ()
                asked = [key for key in groups if key not in _ALWAYS and not key.startswith("lr")]
                found = logged(entry, fit) if asked else None
                keys = {key.name for key in found or ()}
                for key in asked if found is not None else ():
                    if keys.isdisjoint(spellings_of(key)):
                        message = f"`{key}` is always 0 in this name: `{fit.module.name}` logs {listed(keys)}"
                        yield Fault(site, message, of_call=True, argument="filename")
