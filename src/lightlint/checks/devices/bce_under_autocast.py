from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import LossComputed
from lightlint.finding import Tier
from lightlint.values.core import is_constant, text_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_AUTOCAST = "torch.amp.autocast"
_LOSSES = {"binary_cross_entropy", "BCELoss"}
_OLD = "torch.cuda.amp.autocast"


class BceUnderAutocast(Check):
    def visit_Call(self, call: cst.Call) -> None:
        loss = self.facts.criteria.of(call)
        if loss is None or loss.name != "BCELoss":
            return
        context = self._autocast(call) or self._around_calls(call)
        tier = self._tier(context) if context is not None else None
        if tier is not None and not self.runs_right(call, LossComputed, _raises):
            self.report(call, "binary cross entropy of probabilities under autocast raises on CUDA", tier=tier)

    def _autocast(self, node: cst.CSTNode) -> cst.Call | None:
        """The innermost autocast around a node, in its function."""
        for above in self.tree.ancestors(node):
            if isinstance(above, cst.FunctionDef):
                return None
            if isinstance(above, cst.With):
                for item in reversed(above.items):
                    if isinstance(item.item, cst.Call) and self.names.call(item.item) in {_AUTOCAST, _OLD}:
                        return item.item
        return None

    def _around_calls(self, call: cst.Call) -> cst.Call | None:
        """The autocast around a call of the function that computes the loss, of `forward` through an instance."""
        function, node = self.tree.function(call), self.tree.enclosing_class(call)
        if function is None:
            return None
        calls = list(self.hooks.calls_of.get(function, ()))
        if node is not None and function.name.value in {"forward", "__call__"}:
            made = self.names.defined(node)
            called = [each for each in self.tree.all(cst.Call) if isinstance(each.func, (cst.Name, cst.Attribute))]
            calls += [each for each in called if any(o.name == made for o in self.values.origins(each.func))]
        return next((found for each in calls if (found := self._autocast(each))), None)

    def _tier(self, context: cst.Call) -> Tier | None:
        """How sure it is that the context is on and for CUDA; None where it is not."""
        old = self.names.call(context) == _OLD
        enabled = self.names.argument(context, "enabled", 0 if old else 2)
        if enabled is not None and self.names.constant(enabled.value) is False:
            return None
        if old:
            return Tier.ERROR
        device = self.names.argument(context, "device_type", 0)
        kind = self.names.constant(device.value) if device is not None else ""
        if isinstance(kind, str):
            return Tier.ERROR if kind == "cuda" else None
        return Tier.WARNING

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses of probabilities that are computed while autocast for CUDA is on."""
        for event in entry.of(LossComputed):
            context = event.where.autocast
            tier = _tier(context) if event.function in _LOSSES and context is not None else None
            if tier is not None:
                message = "binary cross entropy of probabilities under autocast raises on CUDA"
                yield Fault.at(event, message, tier=tier)


def _raises(event: LossComputed) -> bool:
    return event.where.autocast is not None and _tier(event.where.autocast) is not None


def _tier(context: Instance) -> Tier | None:
    """How sure it is that an autocast is on and for CUDA; None where it is not."""
    enabled, device = context.arguments.get("enabled"), context.arguments.get("device_type")
    if is_constant(enabled, False) or context.open_arguments:
        return None
    kind = text_of(device) if device is not None else "cuda"
    return Tier.WARNING if kind is None else Tier.ERROR if kind.startswith("cuda") else None
