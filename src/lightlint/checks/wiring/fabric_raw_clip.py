from __future__ import annotations

import libcst as cst

from lightlint.check import Check

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
