from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import LossComputed
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, rename
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class KlDivInputNotLog(Check):
    def wants_passes(self) -> bool:
        return "softmax" in self.facts.source.text.lower()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Divergences of what a softmax or a sigmoid gave."""
        for event in entry.of(LossComputed):
            given = event.input
            if event.function not in ("kl_div", "KLDivLoss") or not isinstance(given, Tensor) or given.escaped:
                continue
            if given.activation is not None and given.role in ("probabilities", "sigmoid"):
                name, site = given.activation
                message = f"the input of the divergence went through {name}, where log-probabilities are expected"
                yield Fault.at(event, message, site)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        given = self.names.argument(node, "input", 0) if isinstance(node, cst.Call) else None
        applied = self.node_of(fault.also[0])
        if given is None or given.star or applied is None:
            return None
        return Repair("take log_softmax", self._draft(given.value, applied), Applicability.UNSAFE)

    def _draft(self, given: cst.BaseExpression, applied: cst.CSTNode) -> Draft | None:
        """`log_softmax` for a softmax whose value has no other use."""
        if not isinstance(applied, cst.Call) or self.names.method(applied) != "softmax":
            return None
        if applied is not given:
            named = isinstance(given, cst.Name) and self._is_used_once(given, applied)
            if not named:
                return None
        func = applied.func
        return rename(self.code, func, "log_softmax") if isinstance(func, cst.Attribute) else None

    def _is_used_once(self, name: cst.Name, value: cst.Call) -> bool:
        bound = self.names.bindings.lookup(name)
        uses = [each for each in self.tree.own(self.tree.owner(name), cst.Name) if each.value == name.value]
        return len(bound) == 1 and bound[0].value is value and len(uses) == 2
