from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Logged
from lightlint.values.core import text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class SameKeyTrainAndVal(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for path in entry.paths:
            events = path.of(Logged)
            trained = {(event.module, text_of(event.name)) for event in events if _is_plain(event, "training_step")}
            for event in events:
                key = text_of(event.name)
                if key is not None and _is_plain(event, "validation_step") and (event.module, key) in trained:
                    start = f"`{key}` is logged in `training_step` too"
                    yield Fault.at(event, f"{start}: what callbacks see under it is the value that came last")


def _is_plain(event: Logged, hook: str) -> bool:
    """Whether a hook logs a key whatever tests of something unknown say."""
    return event.where.hook == hook and all(each.known for each in event.where.conditions)
