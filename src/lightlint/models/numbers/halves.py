"""How the numbers of a tensor are stored, where a cast, autocast or the making of it says so, and what halves refuse."""

from __future__ import annotations

import ast
import math
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import PrecisionRefused
from lightlint.engine.machine import Machine
from lightlint.engine.misuse import is_caught
from lightlint.values.core import Constant, Library, Unknown, Value, is_device, number_of, places_of, text_of
from lightlint.values.training import Module, Tensor, tensors_in

HALF, PLAIN, FLAG = "float16", "float32", "bool"
FLOATS = frozenset([HALF, "bfloat16", PLAIN, "float64"])
_MOST = 65_519  # what is larger is no finite number in float16
_PRODUCTS = frozenset(
    ["matmul", "bmm", "mm", "mv", "einsum", "linear", "addmm", "baddbmm", "addbmm", "conv1d", "conv2d", "conv3d"]
)
"""What autocast has computed in 16 bits, in torch 1.10 to 2.13."""
_LAYERS = re.compile(r"(?:Lazy)?(?:Linear|Conv(?:Transpose)?[123]d)")
_WIDE = frozenset(
    ["softmax", "log_softmax", "layer_norm", "exp", "log", "sum", "prod", "pow", "norm", "cumsum", "softplus"]
)
"""What it has computed in 32 bits."""
_SAME = frozenset(
    [
        "relu",
        "leaky_relu",
        "elu",
        "gelu",
        "silu",
        "tanh",
        "sigmoid",
        "dropout",
        "abs",
        "neg",
        "masked_fill",
        "detach",
        "flip",
    ]
)
"""What leaves the dtype as it is, besides what hands on all that is known."""
_CASTS = {"float": PLAIN, "double": "float64", "half": HALF, "bfloat16": "bfloat16", "bool": FLAG}
_FLAGS = frozenset(["eq", "ne", "gt", "lt", "ge", "le", "isnan", "isinf", "logical_not", "logical_and", "logical_or"])
_FILLED = frozenset(["zeros", "ones", "empty", "randn", "rand"])
_PUT = {
    "index_add": 3,
    "index_add_": 3,
    "index_copy": 3,
    "index_copy_": 3,
    "scatter": 3,
    "scatter_": 3,
    "scatter_add_": 3,
    "scatter_reduce_": 3,
    "masked_scatter": 2,
    "masked_scatter_": 2,
}
"""What puts a tensor into another of the same dtype, the first argument, and the place of that tensor."""


def lowered(machine: Machine) -> str:
    """The dtype that autocast has products computed in here, "" where none is on or nobody knows."""
    context = machine.autocasts[-1] if machine.autocasts else None
    if context is None or context.open_arguments:
        return ""
    enabled, kind, named = (context.arguments.get(each) for each in ("enabled", "device_type", "dtype"))
    if enabled is not None and machine.truth(enabled) is False:
        return ""
    if named is not None:
        return dtype_of(named) if dtype_of(named) in FLOATS else ""
    device = text_of(kind) if kind is not None else "cuda"
    return "" if device is None else "bfloat16" if device.startswith("cpu") else HALF


def dtype_of(value: Value | None) -> str:
    """The dtype that a value names, "" for none."""
    path = value.path if isinstance(value, Library) else text_of(value) or ""
    return path.rpartition(".")[2] if path.startswith("torch.") else ""


def fresh(machine: Machine, made: Tensor, name: str, given: Arguments, node: ast.AST) -> None:
    """Note how the numbers of a new tensor are stored."""
    written = given.keywords.get("dtype")
    like = given.get(0, "input")
    if written is not None:
        made.stored = dtype_of(written)
    elif name in _FILLED:
        made.stored = machine.default_dtype
    elif name.endswith("_like") and isinstance(like, Tensor):
        made.stored = like.stored
    if name == "full_like":
        fill(machine, made, given.get(1, "fill_value"), node)


def note(machine: Machine, made: Value, name: str, given: Arguments, node: ast.AST) -> None:
    """Note how what a function or method gives is stored, its tensor the first argument, and what it refuses."""
    note_refused(machine, name, given, node)
    if not isinstance(made, Tensor):
        return
    source = given.get(0, "input")
    if name in _PRODUCTS:
        product(machine, made, *given.values())
    elif name in _CASTS or name in _FLAGS:
        made.stored = _CASTS.get(name, FLAG)
    elif name == "type_as":
        made.stored = getattr(given.get(1, "other"), "stored", "")
    elif isinstance(source, Tensor) and name in _SAME:
        made.stored = source.stored
    elif name.lower() in _WIDE:
        made.stored = PLAIN if lowered(machine) else ""


def note_refused(machine: Machine, name: str, given: Arguments, node: ast.AST) -> None:
    """Write down what a function or method refuses, its tensor the first argument, in place or not."""
    tensor, place = given.get(0, "input"), _PUT.get(name)
    if place is not None and isinstance(tensor, Tensor):
        _put(machine, tensor, given.get(place, "src" if name.startswith("scatter") else "source"), node)
    elif name in ("masked_fill", "masked_fill_"):
        fill(machine, tensor, given.get(2, "value"), node)
    elif name == "where" and len(given.positional) > 2:
        for one, other in (given.positional[1:3], given.positional[2:0:-1]):
            if not isinstance(other, Tensor):
                fill(machine, one, other, node)


def moved(made: Tensor, tensor: Tensor, target: Value | None) -> None:
    """Note how what `to` gives is stored: as a device leaves it, or as a dtype or another tensor says."""
    if isinstance(target, Tensor):
        made.stored = target.stored
    elif dtype_of(target) in FLOATS or dtype_of(target) == FLAG:
        made.stored = dtype_of(target)
    else:
        device = (
            target is None or is_device(target) or isinstance(target, Constant) or "dev" in getattr(target, "hint", "")
        )
        made.stored = tensor.stored if device and not dtype_of(target) else ""


def product(machine: Machine, made: Value, *given: Value | None) -> None:
    """Note how a product of matrices is stored, or what a layer gives."""
    if isinstance(made, Tensor):
        held = {each.stored for value in given for each in tensors_in(value)}
        plain = held.pop() if len(held) == 1 else ""
        made.stored = (lowered(machine) if made.device != "cpu" else "") or plain


def of_layer(machine: Machine, module: Module, made: Tensor) -> None:
    """Note how what a layer gives is stored."""
    if isinstance(module.cls, Library) and _LAYERS.fullmatch(module.name) and made.device != "cpu":
        made.stored = lowered(machine)
    elif module.name in ("LayerNorm", "GroupNorm") and lowered(machine):
        made.stored = PLAIN


def combined(machine: Machine, made: Tensor, symbol: str, left: Value, right: Value, node: ast.AST) -> None:
    """Note how what an operator gives is stored: by the wider of two tensors of several dimensions."""
    if symbol == "@":
        product(machine, made, left, right)
    elif symbol in ("&", "|", "^"):
        made.stored = FLAG if any(isinstance(each, Tensor) and each.stored == FLAG for each in (left, right)) else ""
    elif symbol in ("+", "-", "*", "/"):
        inverted = isinstance(node, ast.UnaryOp)
        made.stored = getattr(right, "stored", "") if inverted else _wider(left, right)


def _wider(left: Value, right: Value) -> str:
    tensors = [each for each in (left, right) if isinstance(each, Tensor)]
    others = [each for each in (left, right) if not isinstance(each, Tensor)]
    if len(tensors) == 1:
        return tensors[0].stored if _is_number(others[0]) and tensors[0].stored in FLOATS else ""
    many = [each for each in tensors if not each.scalar] or tensors
    held = {each.stored for each in many}
    if not held <= FLOATS:
        return ""
    return held.pop() if len(held) == 1 else PLAIN if held == {HALF, PLAIN} else ""


_MATH = re.compile(r"sqrt|log\w*|exp|pow|ceil|floor|prod")


def _is_number(value: Value) -> bool:
    """Whether something is a number of Python, which leaves a tensor's dtype as it is: a size, a power, what `math` gives."""
    if isinstance(value, Constant):
        return True
    if not isinstance(value, Unknown) or not value.plain:
        return False
    if _MATH.fullmatch(value.hint):
        return True
    keys = [key for key, _ in value.factors or ((value.key, 1),)]
    return all(isinstance(key, tuple) and key[:1] in (("size",), ("**",), ("number",), ("length",)) for key in keys)


def fill(machine: Machine, tensor: Value | None, value: Value | None, node: ast.AST) -> None:
    """Write down that a number is written into halves which they cannot hold."""
    number = number_of(value.stacked[0] if isinstance(value, Tensor) and len(value.stacked) == 1 else value)
    if number is None or not math.isfinite(number) or abs(number) <= _MOST:
        return
    if isinstance(tensor, Tensor) and tensor.stored == HALF and not tensor.escaped:
        _refuse(machine, f"{number:g}", HALF, node)


def set_item(machine: Machine, tensor: Tensor, index: Value, new: Value, node: ast.AST) -> None:
    """Write down that numbers of another dtype are put into a tensor at places that tensors tell."""
    tensors = [each for each in places_of(index) if isinstance(each, Tensor)]
    if any(each.stored in (FLAG, "int64") and not each.scalar for each in tensors):
        _put(machine, tensor, new, node)


def _put(machine: Machine, tensor: Tensor, new: Value | None, node: ast.AST) -> None:
    if not isinstance(new, Tensor) or tensor.escaped or new.escaped:
        return
    if {tensor.stored, new.stored} <= FLOATS and tensor.stored != new.stored:
        _refuse(machine, new.stored, tensor.stored, node)


def _refuse(machine: Machine, given: str, held: str, node: ast.AST) -> None:
    if not is_caught(machine, "RuntimeError"):
        context = machine.autocasts[-1] if machine.autocasts else None
        machine.emit(PrecisionRefused(machine.where(node), given, held, context))
