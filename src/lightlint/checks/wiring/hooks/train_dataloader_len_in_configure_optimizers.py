from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LoaderMade, Misused
from lightlint.facts.ranks.world import Ranks
from lightlint.finding import Tier
from lightlint.values.core import Class, NotYet
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_LOADER = "train_dataloader"


class TrainDataloaderLenInConfigureOptimizers(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        if self.facts.lightning.may_be_below("2.0"):
            return
        for event in entry.of(Misused):
            value = event.value
            if isinstance(value, NotYet) and value.name == _LOADER:
                what = "`len`" if event.asked == "len" else f"`{event.asked}`"
                yield Fault.at(event, f"`trainer.{_LOADER}` is None in `configure_optimizers`: {what} raises")
            own = isinstance(value, Module) and isinstance(value.cls, Class) and value.cls.sees_all()
            if own and event.asked == _LOADER and not event.where.conditions:
                yield Fault.at(event, f"this module has no `{_LOADER}` of its own: the call raises")
        for made in entry.of(LoaderMade) if self.facts.world.lightning is Ranks.MANY else ():
            calls = made.where.calls
            asked = next((each for each in calls if each.function.name == _LOADER), None)
            if asked is not None and made.where.hook == "configure_optimizers":
                message = "a second loader without the sampler of the ranks: its length is that of all ranks together"
                yield Fault(asked.site, message, Tier.WARNING)
