"""Tensors."""

from __future__ import annotations

from dataclasses import dataclass

from lightlint.engine.events.base import Event
from lightlint.values.training import Graph, Instance, Mask, Module, Rearranged, Tensor, Weights


@dataclass(eq=False)
class DevicesMixed(Event):
    """Tensors on the CPU and on the GPU met in one operation."""

    on_cpu: Tensor
    on_gpu: Tensor
    operation: str


@dataclass(eq=False)
class Spread(Event):
    """A column and a row of numbers met in one operation: each number with all of the other."""

    operation: str
    left: Tensor
    right: Tensor


@dataclass(eq=False)
class TensorMoved(Event):
    """A tensor that was made on the CPU was moved to a device."""

    tensor: Tensor
    device: str | None
    named: str  # how the program names the device, "" where it asks for it
    as_other: bool = False  # to where another tensor or a module lies, wherever that is


@dataclass(eq=False)
class NumberTaken(Event):
    """The host asked for the numbers in a tensor: `item`, `float`, `cpu`, `print`, ...; a GPU lets it wait for them."""

    tensor: Tensor


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
class BatchMixed(Event):
    """A `layer` takes the batch as its second dimension, as which the sequence `is given` or `is reduced over`."""

    layer: Module
    how: str


@dataclass(eq=False)
class DimensionsMixed(Event):
    """`view` or `reshape` was given the sizes of a tensor's own dimensions in another order; `view` knows what became of it."""

    tensor: Tensor
    how: str
    view: Rearranged


@dataclass(eq=False)
class StatesMixed(Event):
    """`view` or `reshape` was to put the final states of a recurrent `layer` beside each other, whose first dimension counts
    the layers and directions: those of several examples came into one row."""

    layer: Module
    how: str


@dataclass(eq=False)
class WeightsUsed(Event):
    """What a softmax gave weighed the rows of a product, which is summed over another dimension, or over that one: `right`."""

    weights: Weights
    right: bool


@dataclass(eq=False)
class PoleReached(Event):
    """A gradient goes through a function that has none where a cosine is 1 or -1: `sqrt` of 1 - cos², or `acos`: the `graph` tells whether one does."""

    function: str
    graph: Graph


@dataclass(eq=False)
class Masked(Event):
    """Scores of attention were left out where a mask tells, or `kept` there alone."""

    mask: Mask
    kept: bool
    scores: Tensor | None = None
    by_name: bool = False  # a layer takes it as its mask of the padding


@dataclass(eq=False)
class PaddingRead(Event):
    """The last step was taken of sequences that were padded to one length."""

    padded: Tensor


@dataclass(eq=False)
class Rebound(Event):
    """A name that held a parameter or buffer was given another tensor."""

    before: Tensor
    after: Tensor


@dataclass(eq=False)
class OneNormalised(Event):
    """A softmax went over the one output of a linear layer."""

    function: str


@dataclass(eq=False)
class RowsNormalised(Event):
    """A softmax went over the examples of a batch, for each of the outputs that a linear layer gave it."""

    result: Tensor


@dataclass(eq=False)
class OperationDropped(Event):
    """A statement was nothing but the sum, the product or the like of tensors."""

    symbol: str


@dataclass(eq=False)
class NumberAveraged(Event):
    """The mean over a dimension was taken of what a sum over all elements gave: of one number."""

    result: Tensor
    added: Tensor


@dataclass(eq=False)
class DigitsLost(Event):
    """Several functions came one after another where `better` is one that keeps the digits: log1p, expm1, logsumexp."""

    better: str


@dataclass(eq=False)
class ScalarIndexed(Event):
    """An element was asked of a loss that has no dimensions: an IndexError."""

    loss: Tensor


@dataclass(eq=False)
class CudaUsed(Event):
    """A worker used CUDA."""


@dataclass(eq=False)
class PrecisionRefused(Event):
    """Numbers were to go into a tensor that does not take them: one beyond what float16 can hold, or those of another dtype."""

    given: str
    held: str
    autocast: Instance | None
