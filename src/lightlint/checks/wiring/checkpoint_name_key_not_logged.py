from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check
from lightlint.facts.logged_keys import listed, spellings_of
from lightlint.facts.monitors import CHECKPOINT
from lightlint.facts.training import Run

_GROUP = re.compile(r"\{([^{}:!]*?)[:\}]")  # as `ModelCheckpoint` finds them
_ALWAYS = {"epoch", "step", "global_step", "loss", ""}  # what Lightning has in every release, or had in some


class CheckpointNameKeyNotLogged(Check):
    def visit_Module(self, module: cst.Module) -> None:
        if self.facts.lightning.may_be_below("1.5"):
            return
        seen: set[cst.Call] = set()
        for run in self.facts.training.runs:
            for call in self._checkpoints(run):
                if call not in seen:
                    seen.add(call)
                    self._look_at(run, call)

    def _checkpoints(self, run: Run) -> list[cst.Call]:
        """The checkpoints of a fit whose callbacks are all in sight and are Lightning's or this file's."""
        if run.entry != "fit" or run.trainer is None or run.module is None:
            return []
        made = self.facts.training.callbacks(run.trainer) or ()
        names = [self.names.of(call.func) or "" for call in made]
        known = all(name.startswith("lightning.callbacks.") or self.classes.local(name) for name in names)
        return [call for call, name in zip(made, names, strict=True) if known and name == CHECKPOINT]

    def _look_at(self, run: Run, call: cst.Call) -> None:
        given = self.names.argument(call, "filename", 1)
        text = self.facts.monitors.only(given.value) if given is not None else None
        if given is None or text is None or "{{" in text:
            return
        asked = [key for key in dict.fromkeys(_GROUP.findall(text)) if key not in _ALWAYS and not key.startswith("lr")]
        found = self.facts.of_class(run.module or "") if asked else None
        logged = found[0].logged_keys.of_class(found[1]) if found is not None else None
        own = self.facts.logged_keys.beside if logged is not None else None
        if found is None or logged is None or own is None:
            return
        keys = logged | own
        for key in asked:
            if keys.isdisjoint(spellings_of(key)):
                name = found[1].name.value
                self.report(given.value, f"`{key}` is always 0 in this name: `{name}` logs {listed(keys)}")
