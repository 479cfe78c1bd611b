from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Event, OptimizerMade, Sharded, Stepped
from lightlint.explore.questions.certain import held_anyhow
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.engine.frames import Condition
    from lightlint.explore.rehearsals import Entry


class OptimizerBeforeSharding(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Optimizers older than the shards of the parameters that they hold, which no path tells of the new ones."""
        found: dict[OptimizerMade, Sharded] = {}
        for path in entry.paths:
            made, sharded = path.of(OptimizerMade), path.of(Sharded)
            stepped = [(event.optimizer, event.time) for event in path.of(Stepped)]
            for event in made if sharded else ():
                behind = [each for each in sharded if each.time > event.time and _shares(event, each.parameters)]
                if not behind or event.optimizer.told:
                    continue
                again = any(each.time > behind[0].time and _shares(each, event.optimizer.parameters) for each in made)
                times = [time for optimizer, time in stepped if optimizer is event.optimizer]
                used = not times or times[-1] > behind[0].time
                if used and not again:
                    found[event] = behind[-1]
        for event in held_anyhow(found, lambda each: _apart(each, found[each])):
            how = "`fully_shard`" if found[event].how == "fully_shard" else "FSDP"
            message = f"the optimizer keeps the parameters that the model had before {how} replaced them: no step changes the model"
            yield Fault.at(event, message)


def _shares(event: OptimizerMade, parameters: list[Tensor]) -> bool:
    held = {id(each) for each in event.optimizer.parameters}
    return any(id(each) in held for each in parameters)


def _apart(event: Event, other: Event) -> Iterator[Condition]:
    """The tests that let one thing happen and are not among those of another, which might not agree."""
    tests = {(each.site, each.outcome) for each in other.where.conditions}
    keys = {(each.key, each.outcome) for each in other.where.conditions if each.key is not None}
    for each in event.where.conditions:
        if (each.site, each.outcome) not in tests and (each.key, each.outcome) not in keys:
            yield each
