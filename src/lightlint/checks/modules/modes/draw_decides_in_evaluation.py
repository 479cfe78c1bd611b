from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.choices import holds_draw
from lightlint.engine.events import DrawDecided, Stepped

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_MESSAGE = "a random draw decides here in evaluation as well: what is measured is not what the model does by itself, and differs from run to run"


class DrawDecidesInEvaluation(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Tests on a random number in the forward pass of a model in evaluation, which come out as they do in training."""
        for path in entry.paths:
            decided = path.of(DrawDecided)
            trained = {(event.site, _bar(event.key)) for event in decided if event.where.training and event.where.grad}
            stepped = {each for event in path.of(Stepped) for each in event.parameters}
            for event in decided:
                where, bar = event.where, _bar(event.key)
                evaluates = where.training is False and not where.grad and where.module is not None
                mine = where.module.parameters() if evaluates and where.module is not None else []
                if not stepped.isdisjoint(mine) and (event.site, bar) in trained and _is_open(bar):
                    yield Fault.at(event, _MESSAGE)


def _bar(key: Hashable) -> Hashable:
    """What a drawn number is compared with, the draw itself for a flag that was drawn."""
    parts = key if isinstance(key, tuple) else ()
    others = [each for each in parts[1:] if not holds_draw(each)]
    return others[0] if len(parts) == len(_COMPARISON) and len(others) == 1 else ("flag",)


_COMPARISON = ("symbol", "left", "right")


def _is_open(bar: Hashable) -> bool:
    """Whether a number between 0 and 1 may lie on either side."""
    known = isinstance(bar, tuple) and bar[:1] == ("constant",)
    value = bar[2] if known and isinstance(bar, tuple) else None
    return not known or (isinstance(value, float) and 0 < value < 1)
