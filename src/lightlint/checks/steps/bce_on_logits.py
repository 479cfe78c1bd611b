from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import LossComputed
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, replace
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_FUNCTION = "binary_cross_entropy"


class BceOnLogits(Check):
    def visit_Call(self, call: cst.Call) -> None:
        loss = self.facts.criteria.of(call)
        if loss is None or loss.name != "BCELoss":
            return
        activation = self.facts.activations.of(loss.input)
        if activation is not None and activation.name == "linear":
            self.report(
                call,
                "the loss takes probabilities and is given what a linear layer gave, so it raises outside of 0 to 1",
                repair=Repair(
                    "take the loss that applies sigmoid", self._draft(call, loss.settings), Applicability.UNSAFE
                ),
            )

    def _draft(self, call: cst.Call, made_by: cst.Call | None) -> Draft | None:
        """The loss of the same arguments on logits, where it is named or made."""
        if made_by is None:
            return None
        name = self.names.method(made_by)
        new = {_FUNCTION: f"{_FUNCTION}_with_logits", "BCELoss": "BCEWithLogitsLoss"}.get(name)
        if new is None or not isinstance(made_by.func, cst.Attribute) or not self._is_used_once(made_by, call):
            return None
        return replace(self.code, made_by.func, f"{self.code.text_of(made_by.func.value)}.{new}")

    def _is_used_once(self, made_by: cst.Call, call: cst.Call) -> bool:
        """Whether a criterion is given nothing but what this call gives it."""
        if made_by is call:
            return True
        calls = [each for each in self.tree.all(cst.Call) if each.args]
        uses = [each for each in calls if any(origin.call is made_by for origin in self.values.origins(each.func))]
        return len(uses) == 1

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses of probabilities that get what a linear layer gave as it is."""
        for event in entry.of(LossComputed):
            given = event.input
            if event.wants != "probabilities" or not isinstance(given, Tensor) or given.escaped:
                continue
            if given.layer == "Linear" and given.activation is None:
                yield Fault.at(
                    event, f"`{event.function}` takes probabilities and is given the logits of a linear layer"
                )
