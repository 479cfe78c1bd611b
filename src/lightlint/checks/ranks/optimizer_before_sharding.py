from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Event, OptimizerMade, Sharded, Stepped
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class OptimizerBeforeSharding(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Optimizers older than the shards of the parameters that they hold, which no path tells of the new ones."""
        for path in entry.paths:
            made, sharded = path.of(OptimizerMade), path.of(Sharded)
            stepped = [(event.optimizer, event.time) for event in path.of(Stepped)]
            for event in made if sharded else ():
                behind = [each for each in sharded if each.time > event.time and _shares(event, each.parameters)]
                if not behind or event.optimizer.told or not _is_under(behind[-1], event):
                    continue
                again = any(each.time > behind[0].time and _shares(each, event.optimizer.parameters) for each in made)
                times = [time for optimizer, time in stepped if optimizer is event.optimizer]
                used = not times or times[-1] > behind[0].time
                if used and not again:
                    how = "`fully_shard`" if behind[-1].how == "fully_shard" else "FSDP"
                    message = f"the optimizer keeps the parameters that the model had before {how} replaced them: no step changes the model"
                    yield Fault.at(event, message)


def _shares(event: OptimizerMade, parameters: list[Tensor]) -> bool:
    held = {id(each) for each in event.optimizer.parameters}
    return any(id(each) in held for each in parameters)


def _is_under(event: Event, other: Event) -> bool:
    """Whether an event happened under all tests that another one did, which might not agree else."""
    tests = {(each.site, each.outcome) for each in event.where.conditions}
    keys = {(each.key, each.outcome) for each in event.where.conditions if each.key is not None}
    return all((c.site, c.outcome) in tests or (c.key, c.outcome) in keys for c in other.where.conditions)
