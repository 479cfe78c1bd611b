"""Losses, gradients and optimizers."""

from __future__ import annotations

from dataclasses import dataclass, field

from lightlint.engine.events.base import Event
from lightlint.values.core import Function, Site, Value
from lightlint.values.training import Graph, Instance, Module, Optimizer, Schedule, Tensor


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
    caught: bool = False  # a `try` goes on where it raises


@dataclass(eq=False)
class Differentiated(Event):
    """`torch.autograd.grad`: gradients were given back, none added."""

    parameters: list[Tensor]
    graph: frozenset[Graph]
    caught: bool = False  # a `try` goes on where it raises


@dataclass(eq=False)
class Checkpointed(Event):
    """A reentrant checkpoint was given no input with a gradient: its result has none, whatever `parameters` it hangs on."""

    parameters: list[Tensor]
    inputs: list[Value]


@dataclass(eq=False)
class Cleared(Event):
    """Gradients were set to nothing."""

    parameters: list[Tensor]
    by: Value | None
    implicit: bool = False


@dataclass(eq=False)
class RowsCleared(Event):
    """Some of a parameter's gradient was set to zero, in rows or by a mask, or always is, by a hook."""

    parameter: Tensor


@dataclass(eq=False)
class RowsSet(Event):
    """Some of a parameter's numbers were given other values, in rows or by a mask."""

    parameter: Tensor


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
    """Gradients were clipped; `by`: the function of torch; `summoned`: where FSDP has the whole of them together."""

    parameters: list[Tensor]
    more: bool
    limit: Value | None = None
    by: str = ""
    summoned: bool = False


@dataclass(eq=False)
class Unscaled(Event):
    """A GradScaler unscaled an optimizer's gradients."""

    optimizer: Value


@dataclass(eq=False)
class LossComputed(Event):
    """A loss function was called; `wants`: logits, log-probabilities, probabilities, any; a criterion was `made` somewhere."""

    function: str
    wants: str
    input: Value | None
    target: Value | None
    reduction: str | None
    made: Site | None = None
    log_target: Value | None = None  # of a divergence: whether the target is in logarithms
    ignores: bool = False  # it is told a class that it leaves out
    factors: list[Value] = field(default_factory=list)  # with what the loss is multiplied later
    reduced: list[str] = field(default_factory=list)  # with what all of its terms are reduced later


@dataclass(eq=False)
class DifferenceSquared(Event):
    """A difference was squared by hand, as a loss does it: its two sides."""

    left: Value
    right: Value


@dataclass(eq=False)
class RegionsCompared(Event):
    """A loss of MONAI or Segmentation Models compared regions."""

    criterion: Module
    input: Value | None


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
class ParametersChanged(Event):
    """Parameters were given other values by hand: in place, by `nn.init`; `given`: what those come from."""

    parameters: list[Tensor]
    name: str
    given: list[Tensor] = field(default_factory=list)


@dataclass(eq=False)
class Summed(Event):
    """A tensor with a graph was added to the sum that it came from; `carried`: into which no term of this batch had gone yet;
    `earlier`: into which one of another batch had; `waiting`: what it held that no backward pass had gone over."""

    result: Tensor
    before: Tensor
    consumed_before: bool
    carried: bool
    earlier: bool
    waiting: frozenset[Graph] = frozenset()


@dataclass(eq=False)
class WeightSet(Event):
    """A parameter was changed in place behind autograd's back, through `.data`."""

    parameter: Tensor


@dataclass(eq=False)
class ClosureDone(Event):
    """`optimizer_step` of the program, or `step` of its optimizer, has returned."""

    closure: Instance
    function: Function
    called: bool


@dataclass(eq=False)
class Halved(Event):
    """A module's parameters were made 16-bit; `asked_at`: where a call was told so that loads them, under a keyword."""

    module: Module
    parameters: list[Tensor]
    asked_at: tuple[str, Site] | None = None

    def said_at(self, _keyword: str) -> Site:
        """Where the dtype is written."""
        return self.asked_at[1] if self.asked_at is not None else self.site


@dataclass(eq=False)
class LeafChanged(Event):
    """A leaf that requires a gradient was changed in place while autograd records: torch raises."""

    leaf: Tensor
