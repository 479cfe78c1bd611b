"""Modules, their parts and their weights."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from lightlint.engine.arguments import Arguments
from lightlint.engine.events.base import Event
from lightlint.engine.events.python import Called
from lightlint.values.core import Mapping, Value
from lightlint.values.training import Graph, Instance, Loader, Module, Tensor


@dataclass(eq=False)
class Forward(Event):
    """A module was called, from outside any other module's forward."""

    module: Module
    result: Value
    grad: bool
    training: bool
    graph: frozenset[Graph]
    parameters: list[Tensor]
    by_mode: bool
    held_back: Instance | None = None  # the `no_sync` that keeps its gradients from being exchanged
    inputs: list[Tensor] = field(default_factory=list)
    given: Arguments = field(default_factory=Arguments)
    acting: list[Module] = field(default_factory=list)  # itself and the parts that the pass called, in training mode


@dataclass(eq=False)
class PartPassed(Event):
    """A part of a module was called in its forward pass while gradients were off; `training`: in which mode the part was."""

    module: Module
    training: bool


@dataclass(eq=False)
class ModeSet(Event):
    """`train()` or `eval()`."""

    module: Module
    training: bool


@dataclass(eq=False)
class Normalised(Event):
    """Batch normalisation took the mean over the rows of a loader's batch, in training mode."""

    module: Module
    loader: Loader


@dataclass(eq=False)
class AttributeSet(Event):
    """An attribute was set."""

    object: Value
    name: str
    value: Value
    before: Value | None


@dataclass(eq=False)
class ItemSet(Event):
    """A dict was given a module under a key."""

    container: Mapping
    key: Hashable
    value: Value


@dataclass(eq=False)
class PartReplaced(Event):
    """A module's part was replaced by another."""

    module: Module
    before: Value
    after: Value


@dataclass(eq=False)
class CopySet(Event):
    """Something was written into a group of `optimizer.state_dict()`, which is a copy."""

    optimizer: Value
    group: Mapping


@dataclass(eq=False)
class MetricUsed(Event):
    """A metric was updated, called, computed, reset or logged."""

    metric: Instance
    operation: str
    args: list[Value] = field(default_factory=list)


@dataclass(eq=False)
class StateTaken(Event):
    """`state_dict()`."""

    object: Value
    state: Mapping


@dataclass(eq=False)
class StateLoaded(Event):
    """`load_state_dict(...)`."""

    object: Value
    state: Value


@dataclass(eq=False)
class WrapperAsked(Event):
    """Something was asked of a DDP or DataParallel wrapper that it has not, where nothing catches what it raises."""

    wrapper: Module
    name: str


@dataclass(eq=False)
class LoadedUsed(Event):
    """Something was asked of what `torch.load` gave, or gave under a key; `asked` is "()" for a call."""

    load: Called
    key: Hashable | None
    asked: str


@dataclass(eq=False)
class Restored(Event):
    """Fabric put what was saved into a `state`, in the place of what it held `before`."""

    state: Mapping
    before: dict[Hashable, Value]


@dataclass(eq=False)
class StateRead(Event):
    """An entry of a `state` that `torch.load` gave was asked for by a `key`; without one, all were."""

    load: Called
    state: Mapping
    key: Value | None


@dataclass(eq=False)
class EntryKept(Event):
    """What `torch.load` gave under a key went to a name or an attribute, as it is; `back`: it was read from there."""

    load: Called
    key: Hashable
    value: Value
    back: bool = False


@dataclass(eq=False)
class LoadResultUsed(Event):
    """What `load_state_dict` returned was used as if it was the model."""

    load: StateLoaded
    asked: str
