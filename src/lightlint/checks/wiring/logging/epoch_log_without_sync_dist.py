from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Collective, Logged
from lightlint.explore.questions.queries import watched_keys
from lightlint.facts.ranks.world import Ranks
from lightlint.finding import Tier
from lightlint.values.core import is_constant, text_of
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_EVALUATION = {"validation_step", "test_step", "on_validation_epoch_end", "on_test_epoch_end"}


class EpochLogWithoutSyncDist(Check):
    def stands(self) -> bool:
        return self.facts.world.lightning is Ranks.MANY

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for path in entry.paths:
            gathered = {event.where.hook for event in path.of(Collective)}
            for event in path.of(Logged):
                key, synced = text_of(event.name), event.keywords.get("sync_dist")
                local = (
                    isinstance(event.value, Tensor)
                    and event.value.metric is None
                    and not event.where.depends_on("rank")
                )
                plain = synced is None or is_constant(synced, False)
                plain &= not event.open_keywords and "rank_zero_only" not in event.keywords
                if not (local and plain and event.where.hook in _EVALUATION - gathered):
                    continue
                if key in watched_keys(entry) | self.facts.monitors.keys:
                    message = (
                        f"`{key}` is monitored and logged without `sync_dist`: each rank sees the mean of its own share"
                    )
                    chosen_by = key in watched_keys(entry) and bool(self.facts.world.trainers)
                    yield Fault.of(event, message, tier=Tier.WARNING if chosen_by else None)
