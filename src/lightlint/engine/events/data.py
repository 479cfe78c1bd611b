"""Data sets, loaders and what they draw."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from lightlint.engine.events.base import Event
from lightlint.engine.frames import Loop
from lightlint.values.core import Sequence, Site, Value
from lightlint.values.training import Instance, Iterator, Loader


@dataclass(eq=False)
class LoaderMade(Event):
    """A DataLoader was made."""

    loader: Loader


@dataclass(eq=False)
class SplitDrawn(Event):
    """Data was split at random; `seeded`: with a seed of its own; `parts.taken`: those that the program takes."""

    name: str
    data: list[Value]
    parts: Sequence
    seeded: bool


@dataclass(eq=False)
class RowsCut(Event):
    """Some of the rows that a transformer learnt from were taken, from `lower` up to `upper`: None for all on that side."""

    value: Value
    lower: Value
    upper: Value


@dataclass(eq=False)
class RowsScaled(Event):
    """Rows were centred and scaled by the mean and the deviation, or the smallest and the largest, of all of them."""

    rows: Value
    result: Value


@dataclass(eq=False)
class WindowCut(Event):
    """Some steps of a series were taken, from the number of a turn or a sample on, or up to it: the next begin one step later."""


@dataclass(eq=False)
class RowsPicked(Event):
    """Rows of a value were picked by a part of a random order, from `lower` up to `upper`: None for all on that side. The
    value may be the order, as where rows are shuffled."""

    value: Value
    order: Value
    lower: Value
    upper: Value


@dataclass(eq=False)
class RankingComputed(Event):
    """A metric that is no mean over examples, such as an area under the curve, was computed of one batch."""

    function: str
    result: Value


@dataclass(eq=False)
class RankingAveraged(Event):
    """The mean of such `results` was taken."""

    results: frozenset[Value]


@dataclass(eq=False)
class BatchDrawn(Event):
    """A batch came out of a loader."""

    loader: Loader


@dataclass(eq=False)
class SumDivided(Event):
    """What the turns of loops over batches have added up was divided by the length of something that such a `count` names, by
    the number of "epochs", or by the sum of the batches' "numbers"."""

    loops: frozenset[Loop]
    count: Hashable


@dataclass(eq=False)
class Blended(Event):
    """What is called a mask or labels was resized by means of several of its elements."""


@dataclass(eq=False)
class ClassesBlended(Event):
    """Such means were made whole numbers."""


@dataclass(eq=False)
class LossDivided(Event):
    """A loss to which nothing of another turn was added was divided by the length of something that such a `count` names."""

    loss: Value
    count: Hashable


@dataclass(eq=False)
class Transformed(Event):
    """A transform of a library made one value of another."""

    transform: Instance
    given: list[Value]
    result: Value


@dataclass(eq=False)
class NextTaken(Event):
    """`next` of an iterator over a loader."""

    iterator: Iterator
    loader: Loader


@dataclass(eq=False)
class EpochSet(Event):
    """`sampler.set_epoch`."""

    sampler: Instance


@dataclass(eq=False)
class UsedUp(Event):
    """A generator was gone over that an earlier user has emptied; `made`: where it comes from."""

    first: Site
    made: Site | None = None


@dataclass(eq=False)
class WorkerAsked(Event):
    """`get_worker_info()`."""


@dataclass(eq=False)
class LoaderWorked(Event):
    """What a worker of a loader does for one sample, in events of its own.

    `called`: the functions of the program that ran, by the id of their node; `stream`: what `__iter__` of the data set gave.
    """

    loader: Loader
    events: list[Event]
    called: set[int] = field(default_factory=set)
    stream: Value | None = None


@dataclass(eq=False)
class SampleMade(Event):
    """What is done for one sample of a loader, by whomever, in events of its own."""

    loader: Loader
    events: list[Event]


@dataclass(eq=False)
class RandomDrawn(Event):
    """A worker drew from a random generator that it has not seeded."""

    generator: Instance


@dataclass(eq=False)
class Picked(Event):
    """A worker took something out of a container by a number that is known by what it was made of."""

    item: Value
    index: Value


@dataclass(eq=False)
class PickedByTurn(Event):
    """What a loop over batches put into a container was taken out of it by the number of a batch of another loop."""

    filled: Value
    drawn: Value


@dataclass(eq=False)
class HandleUsed(Event):
    """A worker, or the program itself, read from an open file."""

    handle: Instance
