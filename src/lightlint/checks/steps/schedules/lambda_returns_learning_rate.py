from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import ScheduleMade
from lightlint.engine.language.operators import factors_of
from lightlint.explore.questions.queries import optimizer_of
from lightlint.values.core import Unknown

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LambdaReturnsLearningRate(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Functions for `LambdaLR` that give a multiple of the rate that their optimizer was made with."""
        for event in entry.of(ScheduleMade):
            schedule, optimizer = event.schedule, optimizer_of(event.schedule)
            if optimizer is None or schedule.factor is None or schedule.factor_site is None or optimizer.own_rates:
                continue
            rate = optimizer.argument("lr", 1)
            powers = dict(factors_of(schedule.factor) or ())
            if isinstance(rate, Unknown) and "one" not in rate.traits and powers.get(rate.key, 0) > 0:
                message = "`LambdaLR` multiplies the learning rate of the optimizer by this, which has that rate in it: it comes in squared"
                yield Fault(schedule.factor_site, message, also=event.where.places)
