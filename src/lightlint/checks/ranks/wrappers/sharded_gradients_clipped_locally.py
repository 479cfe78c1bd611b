from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, Clipped
from lightlint.engine.frames import Condition
from lightlint.explore.questions.queries import speaks_of
from lightlint.models.ranks.sharding import shards
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

# words of a test that may tell a run with FSDP from one without
_TELLS = re.compile(r"fsdp|shard|distributed|ddp|parallel|world|strategy|engine|single", re.IGNORECASE)


class ShardedGradientsClippedLocally(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Norms that torch takes of the gradients of an FSDP model, of which each rank holds a share."""
        otherwise = any(event.name == "clip_grad_norm_" and event.receiver is not None for event in entry.of(Called))
        for path in entry.paths:
            for event in path.of(Clipped):
                wrapper = _wrapper(path, event)
                if event.by != "clip_grad_norm_" or event.summoned or wrapper is None or wrapper.escaped:
                    continue
                if not (otherwise and _is_chosen(path, wrapper)) and not any(map(_may_tell, event.where.conditions)):
                    message = (
                        "each rank clips by the norm of its own share of the gradients, for FSDP shards this model"
                    )
                    yield Fault.at(event, message)


def _wrapper(path: Path, event: Clipped) -> Module | None:
    """The last FSDP model that was made of some of the parameters, if it surely shards them."""
    made = [each for each in path.machine.objects if isinstance(each, Module) and each.wrapper == "fsdp"]
    around = [
        each for each in made if each.made < event.time and not set(event.parameters).isdisjoint(each.parameters())
    ]
    return around[-1] if around and shards(around[-1]) else None


def _is_chosen(path: Path, wrapper: Module) -> bool:
    """Whether a test that nothing decides lets a model be wrapped."""
    calls = (each for each in path.of(Called) if each.site == wrapper.site)
    return any(not each.known for call in calls for each in call.where.conditions)


def _may_tell(condition: Condition) -> bool:
    """Whether a test that nothing decides may ask for FSDP."""
    return not condition.known and speaks_of(condition.key, _TELLS)
