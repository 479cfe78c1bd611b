"""Tensors: what operations make of graph, device, role and reduction."""

from lightlint.models.tensors.arithmetic import binary
from lightlint.models.tensors.computed import activated, computed, note_single, of_unknown
from lightlint.models.tensors.derivation import (
    PREDICTED,
    copy,
    derive,
    detached,
    device_of,
    device_value,
    mix,
    note_cuts,
    note_early,
    number_in,
    on_gpu,
    without_given_gradients,
)
from lightlint.models.tensors.losses import backward, keeps_graph, loss, reduce
from lightlint.models.tensors.methods import attribute, call_method, set_attribute, shape_of, size
from lightlint.models.tensors.parts import item, part, put_part

__all__ = [
    "PREDICTED",
    "activated",
    "attribute",
    "backward",
    "binary",
    "call_method",
    "computed",
    "copy",
    "derive",
    "detached",
    "device_of",
    "device_value",
    "item",
    "keeps_graph",
    "loss",
    "mix",
    "note_cuts",
    "note_early",
    "note_single",
    "number_in",
    "of_unknown",
    "on_gpu",
    "part",
    "put_part",
    "reduce",
    "set_attribute",
    "shape_of",
    "size",
    "without_given_gradients",
]
