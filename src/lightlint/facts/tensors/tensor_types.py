"""Of which type tensors are made and on which device they lie, and what a move changes of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.values.sources import sources

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_TYPES = {
    "float": "float32", "float32": "float32", "double": "float64", "float64": "float64", "half": "float16",
    "float16": "float16", "bfloat16": "bfloat16", "FloatTensor": "float32", "DoubleTensor": "float64",
    "HalfTensor": "float16", "BFloat16Tensor": "bfloat16", "Tensor": "float32",
}  # fmt: skip
_OF_NUMPY = {"torch.from_numpy", "torch.as_tensor"}
_SAME = "the same"
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Placed:
    """A type and a kind of device, each empty where it is unknown or a move leaves it as it is."""

    dtype: str = ""
    device: str = ""


# what a move to an unknown device, and to an unknown type, most likely does
_UNTOLD = (Placed(device="?"), Placed(dtype=_SAME))


def changes_nothing(facts: Linked, call: cst.Call) -> bool:
    """Whether `x.to(...)`, `x.type(...)`, `x.half()` and the like surely, or most likely, give `x` itself back."""
    func = call.func
    if not isinstance(func, cst.Attribute):
        return False
    wanted = _moves(facts, call, func.attr.value)
    made = _made(facts, func.value, 0)
    if not wanted:
        return False
    return all(
        each.dtype in {"", made.dtype} and each.device in {"", made.device} and each != Placed() for each in wanted
    )


def _moves(facts: Linked, call: cst.Call, method: str) -> list[Placed]:
    """What a move may change a tensor to, each way the program can take; empty for a call that is no move."""
    if method in {"half", "double", "float", "bfloat16"}:
        return [Placed(dtype=_TYPES[method])]
    if method in {"cuda", "cpu"}:
        return [Placed(device=method)]
    if method not in {"to", "type"}:
        return []
    wanted = [Placed()]
    for arg in call.args:
        options = [_told(home, each, method) for home, each in sources(facts, arg.value)]
        wanted = [Placed(one.dtype or two.dtype, one.device or two.device) for one in wanted for two in options]
    return wanted


def _told(facts: Linked, value: cst.BaseExpression | None, method: str) -> Placed:
    """The type or device that an argument of a move stands for."""
    if value is None:
        return _UNTOLD[method == "type"]
    constant = facts.names.constant(value)
    name = constant if isinstance(constant, str) else facts.names.of(value) or ""
    if isinstance(value, cst.Call) and facts.names.call(value) == "torch.device" and value.args:
        return _told(facts, value.args[0].value, method)
    if isinstance(constant, int):
        return Placed(device="cuda")
    room, _, last = name.rpartition(".")
    if last in _TYPES:
        return Placed(_TYPES[last], ("cuda" if "cuda" in room else "cpu") if last.endswith("Tensor") else "")
    device = name.partition(":")[0]
    if device in {"cpu", "cuda", "mps"}:
        return Placed(device=device)
    return _UNTOLD[method == "type" or (isinstance(value, cst.Attribute) and value.attr.value == "dtype")]


def _made(facts: Linked, value: cst.BaseExpression, depth: int) -> Placed:
    """The type and device of a tensor as far as the text tells: float32 on the CPU where nothing says otherwise."""
    plain = Placed("float32", "cpu")
    found = [*facts.reaching.sources(value)] if isinstance(value, cst.Name) else [value]
    call = found[0] if len(found) == 1 else None
    if not isinstance(call, cst.Call) or depth > _DEPTH:
        return plain
    name = facts.names.call(call) or ""
    callee = facts.hooks.callee(call)
    if callee is not None:
        returns = [each for each in facts.values.returns(callee) if each is not None]
        return _made(facts, returns[0], depth + 1) if len(returns) == 1 else plain
    if name in _OF_NUMPY:
        return Placed("?", "cpu")
    if isinstance(call.func, cst.Attribute) and not name:
        before, moves = _made(facts, call.func.value, depth + 1), _moves(facts, call, call.func.attr.value)
        after = moves[0] if len(moves) == 1 else Placed() if not moves else Placed("?", "?")
        return Placed(after.dtype or before.dtype, after.device or before.device)
    first = call.args[0].value if call.args else None
    inner = isinstance(first, (cst.Call, cst.Name)) and (
        name == "torch.nn.Parameter" or name.startswith("torch.nn.init.")
    )
    before = _made(facts, first, depth + 1) if inner and first is not None else plain
    told = _told(facts, call.func, "type") if name.endswith("Tensor") else Placed()
    return Placed(
        _asked(facts, call, "dtype").dtype or told.dtype or before.dtype,
        _asked(facts, call, "device").device or told.device or before.device,
    )


def _asked(facts: Linked, call: cst.Call, keyword: str) -> Placed:
    """What a factory's `dtype=` or `device=` asks for."""
    given = facts.names.argument(call, keyword)
    if given is None or facts.names.constant(given.value) is None:
        return Placed()
    options = {_told(home, each, "type" if keyword == "dtype" else "to") for home, each in sources(facts, given.value)}
    return options.pop() if len(options) == 1 else Placed("?", "?")
