from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Forward, ModeSet

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class EvalModeLeak(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules that a hook of training puts in eval mode to run them so, and that are trained in it from then on."""
        for path in entry.paths:
            for event in path.of(ModeSet):
                where = event.where
                if event.training or where.phase != "train" or not where.hook or event.module.escaped:
                    continue
                runs = _runs_behind(path, event)
                tried = any(not e.grad and e.where.hook == where.hook and e.where.turns == where.turns for e in runs)
                if tried and any(map(_trains, runs)) and not _is_put_back(path, event):
                    yield Fault.at(event, "this stays in eval mode for the rest of the training")


def _runs_behind(path: Path, event: ModeSet) -> list[Forward]:
    """The later runs of a module, of its parts and of what it is a part of."""
    parts = event.module.modules()
    later = (each for each in path.of(Forward) if each.time > event.time and not each.training)
    return [each for each in later if each.module in parts or event.module in each.module.modules()]


def _trains(run: Forward) -> bool:
    """Whether a module that acts by its mode learns from a run."""
    return run.grad and run.by_mode and bool(run.parameters) and any(graph.used for graph in run.graph)


def _is_put_back(path: Path, event: ModeSet) -> bool:
    """Whether anything sets the training mode of a module, or of a part of it, again."""
    parts = event.module.modules()
    later = [each for each in path.of(ModeSet) if each.training and each.time > event.time]
    return any(each.module in parts or event.module in each.module.modules() for each in later)
