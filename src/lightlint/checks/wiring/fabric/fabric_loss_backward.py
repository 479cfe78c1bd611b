from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward
from lightlint.explore.questions.accelerators import set_up_by
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import Draft, replace
from lightlint.values.core import text_of, written

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.training import Instance

_FULL = {None, 32, "32", "32-true", 64, "64", "64-true"}
_SCALED = {16, "16", "16-mixed"}
_LOSSY = {"bf16", "bf16-mixed"}


class FabricLossBackward(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Plain backward passes to the parameters of a module that a Fabric has set up."""
        for event in entry.of(Backward):
            fabric = next((by for each in event.parameters if (by := set_up_by(each)) is not None), None)
            if event.via == "backward" and fabric is not None and fabric.kind == "fabric":
                yield self._fault(event, fabric)

    def _fault(self, event: Backward, fabric: Instance) -> Fault:
        given = fabric.argument("precision", 3)
        constant = written(given)
        precision = constant.value if constant is not None else None
        old = not self.facts.lightning.may_be_at_least("2.3")
        why = ""
        if precision in (_SCALED if old else _SCALED | _LOSSY):
            why = f'precision="{precision}"' if isinstance(precision, str) else f"precision={precision}"
        elif (text_of(fabric.argument("strategy", 1)) or "").startswith("deepspeed"):
            why = 'strategy="deepspeed"'
        known = (given is None and not fabric.open_arguments) or (constant is not None and precision in _FULL)
        effect = f", which with `{why}` {'trains with an unscaled loss' if old else 'raises'}" if why else ""
        tier = Tier.ERROR if why else Tier.NOTE if known else Tier.WARNING
        return Fault.at(event, f"this `backward()` goes past Fabric{effect}", tier=tier)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        func = node.func if isinstance(node, cst.Call) else None
        if not isinstance(node, cst.Call) or not isinstance(func, cst.Attribute) or func.attr.value != "backward":
            return None
        wrong = "unscaled" in fault.message
        draft = self._draft(node, func.value)
        return Repair("call `fabric.backward`", draft, Applicability.UNSAFE if wrong else Applicability.SAFE)

    def _draft(self, call: cst.Call, tensor: cst.BaseExpression) -> Draft | None:
        """`fabric.backward(loss)`, with the Fabric by the name it has where the call stands."""
        scope = self.tree.owner(call)
        names = {each.value: each for each in self.tree.own(scope, cst.Name) if self.facts.fabrics.is_fabric(each)}
        params = scope.params.params if isinstance(scope, cst.FunctionDef) else ()
        known = [each.name.value for each in params if self.facts.fabrics.is_fabric(each.name)]
        found = [*known, *names]
        if not found:
            return None
        arguments = [self.code.text_of(tensor), *(self.code.text_of(arg).rstrip(", ") for arg in call.args)]
        return replace(self.code, call, f"{found[0]}.backward({', '.join(arguments)})")
