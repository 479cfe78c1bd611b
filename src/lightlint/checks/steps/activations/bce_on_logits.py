from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import LossComputed
from lightlint.explore.questions.defaults import by_option
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import replace
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_ON_LOGITS = {"binary_cross_entropy": "binary_cross_entropy_with_logits", "BCELoss": "BCEWithLogitsLoss"}


class BceOnLogits(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses of probabilities that get what a linear layer gave as it is."""
        places: dict[object, set[object]] = {}
        for event in entry.of(LossComputed):
            places.setdefault(event.made, set()).add(event.site)
        by_choice = by_option(entry, LossComputed, _is_fault)
        for event in entry.of(LossComputed):
            if _is_fault(event):
                message = f"`{event.function}` takes probabilities and is given the logits of a linear layer"
                made = [event.made or event.site] if event.made is None or len(places[event.made]) == 1 else []
                yield Fault.at(event, message, *made, tier=Tier.WARNING if event.site in by_choice else None)

    def repair(self, _node: cst.CSTNode, fault: Fault) -> Repair | None:
        """The loss of the same arguments on logits, where it is named or made, if it is given nothing else."""
        made = self.node_of(fault.also[0]) if fault.also else None
        func = made.func if isinstance(made, cst.Call) else None
        new = _ON_LOGITS.get(self.names.method(made)) if isinstance(made, cst.Call) else None
        if new is None or not isinstance(func, cst.Attribute):
            return None
        draft = replace(self.code, func, f"{self.code.text_of(func.value)}.{new}")
        return Repair("take the loss that applies sigmoid", draft, Applicability.UNSAFE)


def _is_fault(event: LossComputed) -> bool:
    given = event.input
    if event.wants != "probabilities" or not isinstance(given, Tensor) or given.escaped:
        return False
    return given.layer == "Linear" and given.activation is None
