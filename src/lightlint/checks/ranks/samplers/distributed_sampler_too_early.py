from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, GroupStarted
from lightlint.explore.questions.queries import speaks_of
from lightlint.facts.ranks.world import Ranks

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_SAMPLERS = {"torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler"}
_NO_GROUP = ("Trainer", "Accelerator", "Fabric")  # what makes its group later, or itself
_BY_HAND = ("init_process_group", "spawn")
_GROUP = re.compile("distributed|initialized|world|rank", re.IGNORECASE)


class DistributedSamplerTooEarly(Check):
    users_with = ("Trainer", "init_process_group")

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Samplers that ask the process group for their numbers before one is made."""
        for path in entry.paths:
            started = [event for event in path.of(GroupStarted) if event.by not in _NO_GROUP]
            for event in path.of(Called):
                if _asks_group(event) and not any(each.time < event.time for each in started):
                    maker = self._maker(path, event, started)
                    if maker:
                        message = (
                            f"no process group exists before `{maker}` makes it: the sampler raises without "
                            "`num_replicas` and `rank`"
                        )
                        yield Fault.at(event, message)

    def _maker(self, path: Path, made: Called, started: list[GroupStarted]) -> str:
        """What makes the first process group after a sampler was made."""
        if started:
            return "init_process_group" if started[0].by in _BY_HAND else ""
        entries = self.facts.rehearsed.entries
        joined = any(event.by in _BY_HAND for each in entries for event in each.of(GroupStarted))
        fits = (
            e for e in path.of(Called) if e.path == "fit" and e.receiver is not None and e.receiver.kind == "trainer"
        )
        later = any(each.time > made.time for each in fits)
        several = any(event.by in _NO_GROUP for event in path.of(GroupStarted))
        several = several or self.facts.world.lightning is not Ranks.ONE
        return "fit" if later and not joined and several else ""


def _asks_group(event: Called) -> bool:
    """Whether a sampler is made that asks the process group, whatever tests say, outside of what Lightning calls."""
    if event.path not in _SAMPLERS or event.where.hook or not event.given.exact:
        return False
    if event.argument("num_replicas", 1) is not None and event.argument("rank", 2) is not None:
        return False
    return not any(speaks_of(each.key, _GROUP) for each in event.where.conditions)
