from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.choices import holds_draw, is_constant_key
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
            steps = path.of(Stepped) if trained else ()
            stepped = {each for event in steps for each in event.parameters}
            for event in decided if stepped else ():
                where, bar = event.where, _bar(event.key)
                if where.training is not False or where.grad or where.module is None or not _is_open(bar):
                    continue
                if (event.site, bar) in trained and not stepped.isdisjoint(where.module.parameters()):
                    yield Fault.at(event, _MESSAGE)


def _bar(key: Hashable) -> Hashable:
    """What a drawn number is compared with; the same of all flags that were drawn."""
    match key:
        case (_, left, right) if holds_draw(left) != holds_draw(right):
            return right if holds_draw(left) else left
    return ("flag",)


def _is_open(bar: Hashable) -> bool:
    """Whether a number between 0 and 1 may lie on either side."""
    match bar:
        case ("constant", _, float() as value):
            return 0 < value < 1
    return not is_constant_key(bar)
