"""Modules: making, calling, moving and setting the mode of what `torch.nn` and the program build."""

from lightlint.models.training.modules.calling import call_module, layer, library_forward
from lightlint.models.training.modules.making import (
    by_mode,
    leave_open,
    move,
    opaque,
    parameter,
    set_mode,
    set_up,
    wrap,
)
from lightlint.models.training.modules.methods import attribute, call_method, part_of
from lightlint.models.training.modules.states import load_result, note_replaced, note_use, result_attribute

__all__ = [
    "attribute",
    "by_mode",
    "call_method",
    "call_module",
    "layer",
    "leave_open",
    "library_forward",
    "load_result",
    "move",
    "note_replaced",
    "note_use",
    "opaque",
    "parameter",
    "part_of",
    "result_attribute",
    "set_mode",
    "set_up",
    "wrap",
]
