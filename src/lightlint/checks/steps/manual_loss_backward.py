from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import Draft, replace

_SCALED = {16, "16", "16-mixed"}
_OWN_BACKWARD = ("deepspeed", "fsdp")
_BY_HAND = re.compile(r"all_?reduce|(?:sync|average|reduce)\w*_grad|^grad$", re.IGNORECASE)


class ManualLossBackward(Check):
    def visit_Call(self, call: cst.Call) -> None:
        facts = self.facts.optimization
        tensor = facts.raw_backward(call)
        node = facts.step_class(call) if tensor is not None else None
        if tensor is None or node is None or not facts.is_manual(node) or self._is_for_an_input(call):
            return
        why = self._why() or self._unreduced(node)
        name = self.code.text_of(tensor)
        self.report(
            call,
            f"`{name}.backward()` goes past Lightning" + (f", which `{why}` needs" if why else ""),
            tier=Tier.WARNING if why else Tier.NOTE,
            repair=Repair(
                "call `self.manual_backward`",
                self._draft(call, tensor),
                Applicability.UNSAFE if why else Applicability.SAFE,
            ),
        )

    def _is_for_an_input(self, call: cst.Call) -> bool:
        """Whether the gradients are read by hand, so that they may be wanted for something else than a step."""
        function = self.tree.function(call)
        reads = self.tree.within(function, cst.Attribute) if function is not None else []
        return any(each.attr.value == "grad" for each in reads)

    def _why(self) -> str:
        """The argument of a Trainer in sight under which a backward pass needs Lightning's help."""
        for trainer in self.facts.world.trainers:
            precision, strategy = trainer.arguments.get("precision"), trainer.arguments.get("strategy")
            if isinstance(precision, (int, str)) and not isinstance(precision, bool) and precision in _SCALED:
                return f"precision={precision!r}".replace("'", '"')
            if isinstance(strategy, str) and strategy.startswith(_OWN_BACKWARD):
                return f'strategy="{strategy}"'
        return ""

    def _unreduced(self, node: cst.ClassDef) -> str:
        """The argument of a Trainer in sight under which DDP waits for `manual_backward` before it averages gradients.

        One such pass takes along what earlier ones left in the gradients, and code may average them by hand.
        """
        calls = self.facts.optimization.calls(node)
        if any(self.names.method(each) == "manual_backward" for each in calls):
            return ""
        rooms = [*self.classes.line(node), *self.facts.optimization.reach(node, "training_step")]
        spelled = [each.value for room in rooms for each in self.tree.within(room, cst.Name)]
        return "" if any(map(_BY_HAND.search, spelled)) else self.facts.world.ddp

    def _draft(self, call: cst.Call, tensor: cst.BaseExpression) -> Draft | None:
        function = self.tree.function(call)
        first = [*function.params.posonly_params, *function.params.params][:1] if function is not None else []
        if not first or function is None or self.tree.class_of(function) is None:
            return None
        arguments = [self.code.text_of(tensor), *(self.code.text_of(arg).rstrip(", ") for arg in call.args)]
        return replace(self.code, call, f"{first[0].name.value}.manual_backward({', '.join(arguments)})")
