"""Processes that train together."""

from __future__ import annotations

from dataclasses import dataclass

from lightlint.engine.arguments import Arguments
from lightlint.engine.events.base import Event
from lightlint.values.core import Site, Value
from lightlint.values.training import Module, Tensor


@dataclass(eq=False)
class Collective(Event):
    """Something all ranks of a group must call together; `alone`: one process is all there is then.

    `group`: which, None for the group of all ranks.
    """

    name: str
    args: list[Value]
    alone: bool = False
    given: Arguments | None = None
    group: Value | None = None


@dataclass(eq=False)
class ReadEarly(Event):
    """The values of a tensor were asked for that a collective in the background has not filled yet."""

    collective: Collective
    tensor: Tensor


@dataclass(eq=False)
class GroupStarted(Event):
    """Code that runs in several ranks has begun: `init_process_group`, DDP, a Trainer or Fabric of several devices."""

    by: str
    given: Arguments | None = None


@dataclass(eq=False)
class GroupMade(Event):
    """A process group of some of the ranks was made, by all of them."""

    name: str
    ranks: Value | None


@dataclass(eq=False)
class Sharded(Event):
    """FSDP has put shards in the place of a module's parameters; `how`: FSDP, fully_shard."""

    module: Module
    parameters: list[Tensor]
    how: str


@dataclass(eq=False)
class ShardsGathered(Event):
    """All ranks brought the shards of a model or an optimizer together."""

    name: str


@dataclass(eq=False)
class NoneUsed(Event):
    """What `rank_zero_only` gives on the other ranks was used as if it were the value."""

    call: Site
    name: str


@dataclass(eq=False)
class BatchSkipped(Event):
    """`on_train_batch_start` of a module gave -1: the rest of the epoch is left out."""

    module: Module
    returned_at: Site | None


@dataclass(eq=False)
class Averaged(Event):
    """What all ranks have found, added up, was divided by the length of something, such as a data set."""

    found: Value
    count: Value
