from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Forward, ModeSet
from lightlint.explore.questions.certain import anyhow
from lightlint.values.core import Library, is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.training import Module

_PHASES = ("val", "test")
_MEANT = re.compile(
    r"dropout|monte|\bmc|mc_|_mc\b|uncertain|ensemble|bayes|batch_?norm|_bn|bn_|adapt|calibrat", re.IGNORECASE
)
_TURNS_ON = re.compile(r"\.train\((?:True|mode=True)?\)")
_AVERAGING = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")


class TrainModeInEvalHook(Check):
    def wants_users(self) -> tuple[str, ...]:
        """What layers a module has may be said where one is made that derives from its class."""
        return ("Trainer",) if _TURNS_ON.search(self.facts.source.text) else ()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules that are put in training mode while Lightning evaluates, and run in it."""
        left, back = [], []
        for path in entry.paths:
            runs = [event for event in path.of(Forward) if event.where.phase in _PHASES and event.training]
            for event in path.of(ModeSet):
                asked = event.training and event.where.phase in _PHASES and not event.module.escaped
                if not asked or any(each.known for each in event.where.conditions) or self._is_meant(event):
                    continue
                inside = event.module.modules()
                until = _put_back(path, event)
                if until is not None:
                    acting = (m for run in runs if event.time < run.time < until for m in run.acting)
                    if any(each in inside and _averages(each) for each in acting):
                        back.append(event)
                elif any(
                    run.module in inside and (run.by_mode or not run.module.children()) and run.time > event.time
                    for run in runs
                ):
                    left.append(event)
        message = "this is in training mode from here on: dropout drops, batch norm learns from this data"
        yield from (Fault.at(event, message) for event in anyhow(left))
        message = "this is in training mode for a pass over what it is evaluated on: batch norm takes the data into its running statistics"
        yield from (Fault.at(event, message) for event in anyhow(back))

    def _is_meant(self, event: ModeSet) -> bool:
        """Whether the hook speaks of what a module in training mode is wanted for."""
        return any(map(_MEANT.search, self.facts.rehearsed.lines_around(event.site)))


def _put_back(path: Path, on: ModeSet) -> int | None:
    """When a module, or a part of it, is put in evaluation mode again; None where it is not."""
    inside = on.module.modules()
    off = [each for each in path.of(ModeSet) if not each.training and each.where.phase in _PHASES]
    mine = [each for each in off if each.module in inside or on.module in each.module.modules()]
    return min((each.time for each in mine if each.time > on.time), default=None)


def _averages(layer: Module) -> bool:
    """Whether a layer keeps running statistics, which it changes in training mode."""
    kept = layer.argument("track_running_stats", 4)
    own = isinstance(layer.cls, Library) and layer.name in _AVERAGING and not layer.escaped
    return own and (kept is None or is_constant(kept, True))
