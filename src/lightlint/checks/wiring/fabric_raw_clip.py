from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.values.core import text_of, written
from lightlint.values.training import Instance, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_CLIPS = {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_"}
_SCALED = {16, "16", "16-mixed"}
_SHARDED = ("fsdp", "deepspeed")


class FabricRawClip(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.call(call)
        given = self.names.argument(call, "parameters", 0) if name in _CLIPS else None
        parameters = given.value if given is not None else None
        func = parameters.func if isinstance(parameters, cst.Call) else None
        if not isinstance(func, cst.Attribute) or func.attr.value != "parameters" or self._unscales(call):
            return
        fabric = self.facts.fabrics.set_up(func.value)
        maker = self.facts.fabrics.constructor(fabric) if fabric is not None else None
        why = self._why(maker) if maker is not None else ""
        if why:
            self.report(call, f"`{(name or '').rpartition('.')[2]}` clips {why}")

    def _why(self, maker: cst.Call) -> str:
        precision = self.names.argument(maker, "precision", 3)
        value = self.names.constant(precision.value) if precision is not None else None
        if precision is not None and isinstance(value, (int, str)) and value in _SCALED:
            return f"gradients that are still scaled, as `{self.code.text_of(precision).rstrip(', ')}` asks for"
        strategy = self.names.argument(maker, "strategy", 1)
        name = self.names.constant(strategy.value) if strategy is not None else None
        if isinstance(name, str) and name.startswith(_SHARDED):
            return f'each rank\'s share of the gradients by its own norm, with `strategy="{name}"`'
        return ""

    def _unscales(self, call: cst.Call) -> bool:
        """Whether the function around takes the scale off by hand."""
        calls = self.tree.own(self.tree.owner(call), cst.Call)
        return any(self.names.method(each) in {"unscale_", "unscale_gradients"} for each in calls)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for name in sorted(_CLIPS):
            for event in entry.calls.get(name, ()):
                given = event.argument("parameters", 0)
                owners = [each.owner for each in tensors_in(given) if each.owner is not None]
                fabric = next((each.managed_by for each in owners if each.managed_by is not None), None)
                why = _why(fabric) if fabric is not None and fabric.kind == "fabric" else ""
                if why and ".unscale_gradients" not in entry.calls and ".unscale_" not in entry.calls:
                    yield Fault.of(event, f"`{event.name}` clips {why}")


def _why(fabric: Instance) -> str:
    """As `_why` of a constructor, of the object."""
    precision = written(fabric.arguments.get("precision", fabric.arguments.get("#3")))
    if precision is not None and precision.value in _SCALED:
        return f"gradients that are still scaled, as `precision={precision.value!r}` asks for"
    strategy = text_of(fabric.arguments.get("strategy", fabric.arguments.get("#1")))
    if strategy is not None and strategy.startswith(_SHARDED):
        return f'each rank\'s share of the gradients by its own norm, with `strategy="{strategy}"`'
    return ""
