from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called, TensorMoved
from lightlint.explore.questions.queries import in_batch, uses_gpu
from lightlint.finding import Applicability, Tier
from lightlint.fixes.draft import Draft
from lightlint.fixes.edits import replace
from lightlint.values.core import Sequence, number_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_EXACT = {"torch.zeros", "torch.ones", "torch.empty", "torch.full", "torch.eye"}
_ROUNDED = {"torch.arange", "torch.linspace"}  # floats may differ in the last digit between devices
_RANDOM = {"torch.rand", "torch.randn", "torch.randint", "torch.randperm"}  # another stream of numbers
_MADE = _EXACT | _ROUNDED | _RANDOM
_FEW, _FEW_EACH = 4096, 16  # numbers in all, and for each of an unknown count
_OTHERWISE = {"device", "out", "requires_grad", "pin_memory"}


class TensorMadeOnCpu(Check):
    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        made = node.func.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else None
        if not isinstance(node, cst.Call) or not isinstance(made, cst.Call) or self.names.call(made) not in _MADE:
            return None
        device = self._device(node)
        return self._repair(node, made, device) if device is not None else None

    def _device(self, call: cst.Call) -> str | None:
        """The text of the device a `.to(...)` or `.cuda()` surely moves to; None for the CPU, a type or the unknown."""
        method = self.names.method(call)
        rest = [arg for arg in call.args if not (arg.keyword and arg.keyword.value == "non_blocking")]
        if method == "cuda" and not rest:
            return '"cuda"'
        if method != "to" or len(rest) != 1 or rest[0].star or (rest[0].keyword and rest[0].keyword.value != "device"):
            return None
        value = rest[0].value
        sure = rest[0].keyword is not None or self._is_device(value)
        return self.code.text_of(value) if sure and self.names.constant(value) != "cpu" else None

    def _is_device(self, value: cst.BaseExpression) -> bool:
        if isinstance(value, cst.Attribute):
            return value.attr.value == "device"
        if isinstance(value, cst.IfExp):
            return self._is_device(value.body) and self._is_device(value.orelse)
        spelled = self.names.constant(value)
        origin = self.values.constructor(value)
        return isinstance(spelled, str) or (origin is not None and origin.name == "torch.device")

    def _repair(self, call: cst.Call, made: cst.Call, device: str) -> Repair:
        name = self.names.call(made)
        exact = name in _EXACT or (
            name == "torch.arange" and all(type(self.names.constant(arg.value)) is int for arg in made.args)
        )
        how = Applicability.SAFE if exact else Applicability.UNSAFE
        return Repair(f"make it there by `device={device}`", self._draft(call, made, device), how)

    def _draft(self, call: cst.Call, made: cst.Call, device: str) -> Draft | None:
        text = self.code.text_of(made)
        if text.startswith("(") or self.code.has_comment(call):
            return None
        text = text.removesuffix(")").rstrip().removesuffix(",")
        return replace(self.code, call, f"{text}, device={device})")

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Tensors that are made on the CPU and copied to the device in the same turn of a loop over batches."""
        for path in entry.paths:
            made = {(event.site, event.where.turns): event for event in path.of(Called) if event.path in _MADE}
            for event in path.of(TensorMoved):
                call = made.get((event.tensor.site, event.where.turns)) if event.tensor.site is not None else None
                there = event.device == "cuda" or (event.as_other and uses_gpu(path))
                if (
                    call is None
                    or event.tensor.filled
                    or not in_batch(event.where)
                    or not there
                    or not call.given.exact
                ):
                    continue
                if event.tensor.origin == event.tensor.site and not _OTHERWISE & call.given.keywords.keys():
                    message = f"`{call.name}` is made on the CPU and copied to the device in each batch"
                    yield Fault.of(event, message, tier=Tier.NOTE if call.path in _RANDOM or _is_small(call) else None)


def _is_small(call: Called) -> bool:
    """Whether a tensor is of a few numbers, or of a few for each sample: its copy is lost in the time of a step."""
    first = call.given.positional[:1]
    sizes = [*first[0].items] if first and isinstance(first[0], Sequence) else [*call.given.positional]
    if call.path in {"torch.full", "torch.randint"}:
        sizes = sizes if first and isinstance(first[0], Sequence) else []
    if call.path in _ROUNDED:
        sizes = sizes[1:2] or sizes
    known = [number for number in map(number_of, sizes) if number is not None]
    largest = {0: _FEW, 1: _FEW_EACH}.get(len(sizes) - len(known), 0)
    return bool(known) and math.prod(known) <= largest
