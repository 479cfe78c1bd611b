from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Configured, FitStarted
from lightlint.explore.parsed import said_in
from lightlint.explore.questions.queries import in_sight
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import Draft, replace
from lightlint.values.core import Class, written

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.training import Module

_SCALED = {16, "16", "16-mixed"}
_OWN_BACKWARD = ("deepspeed", "fsdp")
_BY_HAND = re.compile(r"all_?reduce|(?:sync|average|reduce)\w*_grad|^grad$", re.IGNORECASE)


class ManualLossBackward(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Backward passes past Lightning over a loss of parameters alone, which nothing but such steps makes."""
        for path in entry.paths:
            by_hand = {event.module for event in path.of(Configured) if event.automatic is False}
            through = any(event.via == "manual_backward" for event in path.of(Backward))
            for event in path.of(Backward) if by_hand else ():
                own = event.via in ("backward", "unknown") and event.where.hook == "training_step"
                module = next(
                    (each for each in by_hand if own and in_sight([each]) and self._is_for_step(event, each)), None
                )
                if module is not None:
                    why = _needing_help(path, module) or self._why() or ("" if through else self._unreduced(module))
                    message = f"{self._named(event)} goes past Lightning" + (f", which `{why}` needs" if why else "")
                    yield Fault.at(event, message, tier=Tier.WARNING if why else Tier.NOTE)

    def _is_for_step(self, event: Backward, module: Module) -> bool:
        """Whether gradients are for a step: of parameters, read by nobody there, and of no other code's."""
        node = self.node_of(event.site)
        function = self.tree.function(node) if node is not None else None
        reads = self.tree.within(function, cst.Attribute) if function is not None else []
        if node is None or any(each.attr.value == "grad" for each in reads):
            return False
        if event.via == "unknown":  # of something out of sight: an engine's `backward` is given the loss
            own = isinstance(node, cst.Call) and not any(arg.keyword is None for arg in node.args)
        else:
            own = all(each.parameter for each in event.parameters) and bool(event.parameters)
        return own and all(each.where.hook == "training_step" for _, _, each in self.happened(node, Backward))

    def _named(self, event: Backward) -> str:
        call = self.node_of(event.site)
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == "backward":
            return f"`{self.code.text_of(call.func.value)}.backward()`"
        return "`backward`"

    def _why(self) -> str:
        """The argument of a Trainer in sight under which a backward pass needs Lightning's help."""
        found = (
            _why(each.arguments.get("precision"), each.arguments.get("strategy")) for each in self.facts.world.trainers
        )
        return next(filter(None, found), "")

    def _unreduced(self, module: Module) -> str:
        """The argument of a Trainer in sight under which DDP waits for `manual_backward` before it averages gradients.

        One such pass takes along what earlier ones left in the gradients, and code may average them by hand.
        """
        rooms = (
            [each.node for each in module.cls.lineage() if isinstance(each, Class)]
            if isinstance(module.cls, Class)
            else []
        )
        spelled = {word for room in rooms for word in said_in(room).names}
        return "" if any(map(_BY_HAND.search, spelled)) else self.facts.world.ddp

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        safe = Applicability.UNSAFE if fault.tier is Tier.WARNING else Applicability.SAFE
        draft = self._draft(node) if isinstance(node, cst.Call) else None
        return Repair("call `self.manual_backward`", draft, safe) if draft is not None else None

    def _draft(self, call: cst.Call) -> Draft | None:
        function = self.tree.function(call)
        first = [*function.params.posonly_params, *function.params.params][:1] if function is not None else []
        func = call.func
        if not first or function is None or self.tree.class_of(function) is None or not isinstance(func, cst.Attribute):
            return None
        if func.attr.value != "backward":
            return None
        arguments = [self.code.text_of(func.value), *(self.code.text_of(arg).rstrip(", ") for arg in call.args)]
        return replace(self.code, call, f"{first[0].name.value}.manual_backward({', '.join(arguments)})")


def _needing_help(path: Path, module: Module) -> str:
    """The same of the Trainer that fits a module, wherever its arguments come from."""
    for event in path.of(FitStarted):
        given = {name: written(event.trainer.arguments.get(name)) for name in ("precision", "strategy")}
        found = _why(*(each.value if each is not None else None for each in given.values()))
        if event.module is module and found:
            return found
    return ""


def _why(precision: object, strategy: object) -> str:
    """An argument under which a backward pass needs Lightning's help: losses are scaled, or an engine does it."""
    if isinstance(precision, (int, str)) and not isinstance(precision, bool) and precision in _SCALED:
        return f"precision={precision!r}".replace("'", '"')
    if isinstance(strategy, str) and strategy.startswith(_OWN_BACKWARD):
        return f'strategy="{strategy}"'
    return ""
