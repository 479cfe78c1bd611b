"""What a rehearsal writes down, in the words of the runtime companion's meters."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from lightlint.engine.arguments import Arguments
from lightlint.engine.frames import Call, Condition, Loop, Turn
from lightlint.values.core import Function, Mapping, Sequence, Site, Value
from lightlint.values.training import Graph, Instance, Loader, Module, Optimizer, Schedule, Tensor


class Where(NamedTuple):
    """Where and when: place, clock, open loops, tests that let it happen, calls, phase, grad mode, inside a DDP forward.

    `module`: the one whose forward pass it happens in, the innermost; `training`: in which mode that is then.
    `autocast`: the innermost that is open.
    """

    site: Site
    time: int
    turns: tuple[Turn, ...]
    conditions: tuple[Condition, ...]
    calls: tuple[Call, ...]
    phase: str
    grad: bool
    inside_ddp: bool
    hook: str = ""  # of Lightning, that runs
    module: Module | None = None
    training: bool | None = None
    autocast: Instance | None = None

    @property
    def places(self) -> tuple[Site, ...]:
        """The place, and those of the calls that led there."""
        return (self.site, *(call.site for call in self.calls))

    def within(self, kind: str) -> bool:
        """Whether a loop of a kind is open."""
        return any(turn.loop.kind == kind for turn in self.turns)

    def in_loop(self, kind: str) -> Site:
        """The place in the body of the innermost loop of a kind: the event's, or that of the call there that led to it."""
        depths = [depth for depth, turn in enumerate(self.turns) if turn.loop.kind == kind]
        return next((call.site for call in self.calls if depths and call.turns > depths[-1]), self.site)

    def same_turn(self, other: Where) -> bool:
        """Whether the same turns of the same loops are open."""
        return self.turns == other.turns

    def depends_on(self, trait: str) -> bool:
        """Whether a test on such a number let it happen."""
        return any(trait in condition.traits for condition in self.conditions)

    def depends_on_unknown(self, trait: str) -> bool:
        """Whether a test on such a number that may come out otherwise let it happen."""
        return any(trait in condition.traits and not condition.known for condition in self.conditions)

    def behind(self, trait: str) -> Site:
        """The place in the function of the last test on such a number: the event's, or that of the call that led to it."""
        depths = [condition.depth for condition in self.conditions if trait in condition.traits]
        return self.calls[depths[-1]].site if depths and depths[-1] < len(self.calls) else self.site


@dataclass(eq=False)
class Event:
    """Base of all events."""

    where: Where

    @property
    def site(self) -> Site:
        """The place."""
        return self.where.site

    @property
    def time(self) -> int:
        """The clock."""
        return self.where.time

    def said_at(self, _keyword: str) -> Site:
        """The place where one of its arguments is written."""
        return self.site


E = TypeVar("E", bound=Event)


@dataclass(eq=False)
class Backward(Event):
    """Gradients were added to `.grad` of parameters; `via`: backward, manual_backward, fabric, accelerate, lightning, autograd.

    `perhaps`: other parameters, whose tensors went into code out of sight before, which may have led them into this loss.
    """

    parameters: list[Tensor]
    loss: Tensor | None
    via: str
    twice: bool = False  # through a graph that an earlier pass has freed
    kept: bool = False  # the graph may be gone over again
    graph: frozenset[Graph] = frozenset()
    perhaps: list[Tensor] = field(default_factory=list)
    held_back: list[Instance] = field(default_factory=list)  # the `no_sync` that are open


@dataclass(eq=False)
class Differentiated(Event):
    """`torch.autograd.grad`: gradients were given back, none added."""

    parameters: list[Tensor]
    graph: frozenset[Graph]


@dataclass(eq=False)
class Cleared(Event):
    """Gradients were set to nothing."""

    parameters: list[Tensor]
    by: Value | None
    implicit: bool = False


@dataclass(eq=False)
class Stepped(Event):
    """An optimizer changed its parameters; `via`: direct, scaler, lightning, accelerate."""

    optimizer: Instance
    parameters: list[Tensor]
    via: str
    scaler: Instance | None = None
    closure: bool = False


@dataclass(eq=False)
class Clipped(Event):
    """Gradients were clipped."""

    parameters: list[Tensor]
    more: bool
    limit: Value | None = None


@dataclass(eq=False)
class Unscaled(Event):
    """A GradScaler unscaled an optimizer's gradients."""

    optimizer: Value


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


@dataclass(eq=False)
class ModeSet(Event):
    """`train()` or `eval()`."""

    module: Module
    training: bool


@dataclass(eq=False)
class LossComputed(Event):
    """A loss function was called; `wants`: logits, log-probabilities, probabilities, any; a criterion was `made` somewhere."""

    function: str
    wants: str
    input: Value | None
    target: Value | None
    reduction: str | None
    made: Site | None = None


@dataclass(eq=False)
class OptimizerMade(Event):
    """An optimizer was made."""

    optimizer: Optimizer


@dataclass(eq=False)
class ScheduleMade(Event):
    """A schedule was made."""

    schedule: Schedule


@dataclass(eq=False)
class ScheduleStepped(Event):
    """A schedule was stepped."""

    schedule: Schedule
    args: list[Value]
    implicit: bool = False


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
class BatchDrawn(Event):
    """A batch came out of a loader."""

    loader: Loader


@dataclass(eq=False)
class Normalised(Event):
    """Batch normalisation took the mean over the rows of a loader's batch, in training mode."""

    module: Module
    loader: Loader


@dataclass(eq=False)
class EpochSet(Event):
    """`sampler.set_epoch`."""

    sampler: Instance


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
class ParametersChanged(Event):
    """Parameters were given other values by hand: in place, by `nn.init`."""

    parameters: list[Tensor]
    name: str


@dataclass(eq=False)
class NoneUsed(Event):
    """What `rank_zero_only` gives on the other ranks was used as if it were the value."""

    call: Site
    name: str


@dataclass(eq=False)
class Written(Event):
    """A file was written; by `torch.save` a `value`."""

    name: str
    path: Value | None
    value: Value | None = None


@dataclass(eq=False)
class Appended(Event):
    """A value went into a container."""

    container: Sequence
    value: Value
    consumed_before: bool


@dataclass(eq=False)
class Emptied(Event):
    """A container was emptied."""

    container: Sequence | Mapping


@dataclass(eq=False)
class Summed(Event):
    """A tensor with a graph was added to the sum that it came from; `carried`: into which no term of this batch had gone yet."""

    result: Tensor
    before: Tensor
    consumed_before: bool
    carried: bool


@dataclass(eq=False)
class Looped(Event):
    """A loop was entered."""

    loop: Loop


@dataclass(eq=False)
class Left(Event):
    """A loop or function was left early: `break`, `continue`, `return` behind a test."""

    word: str

    @property
    def leaves_loop(self) -> bool:
        """Whether a loop of the function itself is left for good."""
        around = self.where.calls[-1].turns if self.where.calls else 0
        return self.word in ("break", "return") and len(self.where.turns) > around


@dataclass(eq=False)
class BatchSkipped(Event):
    """`on_train_batch_start` of a module gave -1: the rest of the epoch is left out."""

    module: Module
    returned_at: Site | None


@dataclass(eq=False)
class AttributeSet(Event):
    """An attribute was set."""

    object: Value
    name: str
    value: Value
    before: Value | None


@dataclass(eq=False)
class PartReplaced(Event):
    """A module's part was replaced by another."""

    module: Module
    before: Value
    after: Value


@dataclass(eq=False)
class DevicesMixed(Event):
    """Tensors on the CPU and on the GPU met in one operation."""

    on_cpu: Tensor
    on_gpu: Tensor
    operation: str


@dataclass(eq=False)
class CopySet(Event):
    """Something was written into a group of `optimizer.state_dict()`, which is a copy."""

    optimizer: Value
    group: Mapping


@dataclass(eq=False)
class UsedUp(Event):
    """A generator was gone over that an earlier user has emptied; `made`: where it comes from."""

    first: Site
    made: Site | None = None


@dataclass(eq=False)
class Spread(Event):
    """A column and a row of numbers met in one operation: each number with all of the other."""

    operation: str
    left: Tensor
    right: Tensor


@dataclass(eq=False)
class WeightSet(Event):
    """A parameter was changed in place behind autograd's back, through `.data`."""

    parameter: Tensor


@dataclass(eq=False)
class MetricUsed(Event):
    """A metric was updated, called, computed, reset or logged."""

    metric: Instance
    operation: str
    args: list[Value] = field(default_factory=list)


@dataclass(eq=False)
class Logged(Event):
    """One value that `self.log` or `self.log_dict` is given; the name is None where it is out of sight."""

    module: Module
    name: Value | None
    value: Value | None
    keywords: dict[str, Value] = field(default_factory=dict)
    method: str = "log"
    open_keywords: bool = False  # and perhaps other keywords


@dataclass(eq=False)
class FitStarted(Event):
    """`Trainer.fit`; `in_eval`: the modules of the one that are in eval mode then."""

    module: Module
    trainer: Instance
    training: bool
    by_mode: bool
    in_eval: list[Module]


@dataclass(eq=False)
class Scheduled:
    """A schedule as `configure_optimizers` gives it.

    `interval` is None where it is out of sight; `config` is the dict around the schedule, `beside` the one with its optimizer.
    """

    schedule: Schedule
    interval: str | None
    config: Mapping | None
    beside: Mapping | None


@dataclass(eq=False)
class Configured(Event):
    """What `configure_optimizers` returned, and what Lightning trains the module with for it."""

    module: Module
    trainer: Instance
    returned: Value
    returned_at: Site | None
    optimizers: list[Optimizer]
    schedules: list[Scheduled]
    automatic: bool

    def mappings(self) -> list[Mapping]:
        """The dicts that are meant to hold an optimizer."""
        held = self.returned.items if isinstance(self.returned, Sequence) else [self.returned]
        return [each for each in held if isinstance(each, Mapping)] if self._schedules() is None else []

    def configs(self) -> list[Mapping]:
        """The dicts that are meant to hold a schedule."""
        found = [each.items.get("lr_scheduler") for each in self.mappings()]
        beside = self._schedules()
        found += beside.items if isinstance(beside, Sequence) else [beside]
        return [each for each in found if isinstance(each, Mapping)]

    def _schedules(self) -> Value | None:
        """What stands behind a list of optimizers: a list of schedules or one of them."""
        held = self.returned.items if isinstance(self.returned, Sequence) else []
        return held[1] if len(held) == 2 and isinstance(held[0], Sequence) else None


@dataclass(eq=False)
class StepReturned(Event):
    """`training_step` gave something back, at its `return` where one is `written`."""

    module: Module
    result: Value
    automatic: bool
    written: bool


@dataclass(eq=False)
class ClosureDone(Event):
    """`optimizer_step` of the program, or `step` of its optimizer, has returned."""

    closure: Instance
    function: Function
    called: bool


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
class Unwrapped(Event):
    """`.module` of a DDP wrapper."""

    wrapper: Module
    module: Module


@dataclass(eq=False)
class Halved(Event):
    """A module's parameters were made 16-bit."""

    module: Module
    parameters: list[Tensor]


@dataclass(eq=False)
class TensorMoved(Event):
    """A tensor that was made on the CPU was moved to a device."""

    tensor: Tensor
    device: str | None
    named: str  # how the program names the device, "" where it asks for it


@dataclass(eq=False)
class LeafChanged(Event):
    """A leaf that requires a gradient was changed in place while autograd records: torch raises."""

    leaf: Tensor


@dataclass(eq=False)
class ResultDropped(Event):
    """A tensor that moving another gave was dropped by a statement that is nothing but the move."""

    moved: Tensor


@dataclass(eq=False)
class GradientsSwitched(Event):
    """Parameters were frozen or thawed, all those of a `module` or one."""

    parameters: list[Tensor]
    on: bool
    module: Module | None = None


@dataclass(eq=False)
class ViewRefused(Event):
    """`view` was to merge dimensions that lie apart in memory, after `permute` or `transpose`: torch raises."""

    after: str


@dataclass(eq=False)
class GarbageRead(Event):
    """A forward pass computed with a parameter whose memory nobody has filled."""

    parameter: Tensor


@dataclass(eq=False)
class PaddingRead(Event):
    """The last step was taken of sequences that were padded to one length."""

    padded: Tensor


@dataclass(eq=False)
class LoadedUsed(Event):
    """Something was asked of what `torch.load` gave, or gave under a key; `asked` is "()" for a call."""

    load: Called
    key: Hashable | None
    asked: str


@dataclass(eq=False)
class LoadResultUsed(Event):
    """What `load_state_dict` returned was used as if it was the model."""

    load: StateLoaded
    asked: str


@dataclass(eq=False)
class WorkerAsked(Event):
    """`get_worker_info()`."""


@dataclass(eq=False)
class Called(Event):
    """A call of what a library gives: a function or class by canonical path, or the method `path` of `receiver`."""

    path: str
    given: Arguments
    receiver: Instance | None = None

    @property
    def name(self) -> str:
        """Its name without the path."""
        return self.path.rpartition(".")[2]

    def argument(self, name: str, position: int | None = None) -> Value | None:
        """An argument by name or position, None where none is given in sight."""
        return self.given.get(-1 if position is None else position, name)

    def said_at(self, keyword: str) -> Site:
        """Where a keyword is written: in the call, or in what stands in the same file and was handed to it."""
        site = self.given.said.get(keyword, self.site)
        return site if site[0] == self.site[0] else self.site


@dataclass(eq=False)
class LoaderWorked(Event):
    """What a worker of a loader does for one sample, in events of its own."""

    loader: Loader
    events: list[Event]


@dataclass(eq=False)
class RandomDrawn(Event):
    """A worker drew from a random generator that it has not seeded."""

    generator: Instance


@dataclass(eq=False)
class HandleUsed(Event):
    """A worker read from an open file."""

    handle: Instance


@dataclass(eq=False)
class AttributeRead(Event):
    """A worker read an attribute."""

    object: Instance
    name: str


@dataclass(eq=False)
class CudaUsed(Event):
    """A worker used CUDA."""


@dataclass(eq=False)
class CalledUnknown(Event):
    """A call into code out of sight took values along."""

    callee: Value
    values: list[Value]
