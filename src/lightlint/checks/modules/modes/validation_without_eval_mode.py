from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Forward, ModeSet, Stepped
from lightlint.explore.questions.certain import anyhow
from lightlint.explore.questions.queries import acts_by_mode, goes_nowhere, in_batch, in_sight

if TYPE_CHECKING:
    from lightlint.engine.events import Where
    from lightlint.engine.frames import Turn
    from lightlint.explore.rehearsals import Entry, Path

# a loop of such a function over such batches evaluates, whatever it records
_EVALUATION = re.compile(
    r"_?(?:run_)?(?:val(?:id(?:ate|ation)?)?|eval(?:uate|uation)?|test)(?:_(?:epoch|model|step|loop|one_epoch))?"
)
_MEANT = re.compile(
    r"(?:^|_)mc(?:$|_|[A-Z])|monte|bayes|uncertain|ensembl|dropout|calib|bn_|_bn|stat|precise|warm", re.IGNORECASE
)
# names of functions that evaluate: to look into another file for any other is too much to ask


def _batch_of(where: Where) -> Turn | None:
    """The turn of the innermost loop over batches."""
    return next((turn for turn in reversed(where.turns) if turn.loop.kind == "batch"), None)


def _is_set_for_it(path: Path, event: Forward) -> bool:
    """Whether the training mode was asked for behind all that trained before: dropout is to draw, as for an ensemble."""
    modes = [each for each in path.of(ModeSet) if each.module is event.module and each.time < event.time]
    if not modes or not modes[-1].training:
        return False
    times = [each.time for each in path.of(Backward) if each.time < event.time]
    return bool(times) and max(times) < modes[-1].time


_MESSAGE = "the module is evaluated in training mode: dropout drops, batch norm learns from this data"


class ValidationWithoutEvalMode(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules that train, and run over batches without gradients, or for nothing that uses these, in training mode."""
        found: list[Forward] = []
        for path in entry.paths:
            stepped = {each for event in path.of(Stepped) for each in event.parameters}
            training = {_batch_of(event.where) for event in path.of(Backward)}
            for event in path.of(Forward):
                trained = stepped & set(event.parameters) and in_sight([event.module])
                if not event.training or event.where.phase or not trained or not in_batch(event.where):
                    continue
                if _batch_of(event.where) in training:  # a part of a step, as where two models train in turns
                    continue
                if _is_set_for_it(path, event):
                    continue
                functions = [call.function.name for call in event.where.calls]
                named = any(map(_EVALUATION.fullmatch, functions)) and goes_nowhere(event.graph)
                names = [event.module.name, *functions]
                meant = any(map(_MEANT.search, names))
                if not (event.grad and not named) and not meant and acts_by_mode(event.module, event.acting):
                    found += [] if self._is_dropped(event) else [event]
        sites = (self.facts.rehearsed.nearest(event.where) for event in anyhow(found))
        yield from (Fault(site, _MESSAGE) for site in sites if site is not None)

    def _is_dropped(self, event: Forward) -> bool:
        """Whether nothing uses what a call gives, which then is made for what it does to the module."""
        span = self.facts.rehearsed.span(event.site)
        calls = [each for each in self.tree.all(cst.Call) if self.facts.positions.span(each) == span]
        return any(isinstance(self.tree.parent(each), cst.Expr) for each in calls)
