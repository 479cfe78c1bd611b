from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured
from lightlint.explore.queries import in_sight, sure
from lightlint.facts.compat import is_versioned
from lightlint.facts.keywords import Keyword
from lightlint.values.core import number_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


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

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Trainers told to clip or to accumulate for a module that optimizes by hand, on each path."""
        for name in ("gradient_clip_val", "accumulate_grad_batches"):
            for event in sure(entry, Configured, partial(_acts, name)):
                if event.trainer.site is not None:
                    message = f"`{name}` with `{event.module.name}`, which optimizes by hand: `fit` raises"
                    yield Fault(event.trainer.site, message)


def _acts(name: str, event: Configured) -> bool:
    number = number_of(event.trainer.arguments.get(name))
    known = not event.automatic and not event.trainer.open_arguments and in_sight([event.module])
    return known and number is not None and number > (1 if name == "accumulate_grad_batches" else 0)
