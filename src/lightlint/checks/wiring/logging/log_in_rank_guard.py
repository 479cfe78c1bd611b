from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Logged
from lightlint.explore.questions.queries import is_cut_off, watched_keys
from lightlint.facts.ranks.trainers import lightning_ranks
from lightlint.facts.ranks.world import Ranks
from lightlint.finding import Tier
from lightlint.values.core import is_constant, text_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LogInRankGuard(Check):
    def stands(self) -> bool:
        return lightning_ranks(self.facts) is not Ranks.ONE

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for first, second in entry.pairs():
            if second.raised:  # what it would have logged behind that nobody knows
                continue
            there = {_joined(event) for event in second.of(Logged)}
            for event in first.of(Logged):
                told = event.keywords.get("rank_zero_only") is not None
                if _joined(event) in there or told or is_cut_off(event.where):
                    continue
                key, value = text_of(event.name), event.value
                if is_constant(event.keywords.get("sync_dist"), True):
                    effect = "`sync_dist` waits for the others, which never come"
                elif isinstance(value, Instance) and value.kind == "metric":
                    effect = (
                        "the metric is synchronized at the end of the epoch and waits for the others, which never come"
                    )
                elif key in watched_keys(entry) | self.facts.monitors.keys:
                    effect = f"`{key}` is monitored, and the others do not have it"
                else:
                    continue
                tier = Tier.WARNING if self.facts.world.is_untold else None
                yield Fault.of(event, f"`{event.method}` on some ranks only: {effect}", tier=tier)


def _joined(event: Logged) -> tuple[str, str | None]:
    """What the ranks must have in common: where it is logged, and under which name."""
    return event.where.hook, text_of(event.name)
