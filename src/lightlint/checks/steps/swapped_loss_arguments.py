from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import LossComputed
from lightlint.facts.bindings import Kind
from lightlint.finding import Applicability
from lightlint.fixes.edits import join, replace
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_UNEQUAL = {"CrossEntropyLoss", "NLLLoss", "KLDivLoss", "BCELoss", "BCEWithLogitsLoss"}
_MOVING = {"to", "cuda", "long", "float", "cpu", "view", "squeeze", "unsqueeze"}


class SwappedLossArguments(Check):
    def visit_Call(self, call: cst.Call) -> None:
        loss = self.facts.criteria.of(call)
        if loss is None or loss.name not in _UNEQUAL or loss.target is None:
            return
        if self._is_label(loss.input, 0) and self._is_prediction(loss.target):
            given, target = self.code.text_of(loss.input), self.code.text_of(loss.target)
            draft = join(replace(self.code, loss.input, target), replace(self.code, loss.target, given))
            self.report(
                call,
                f"`{loss.name}` takes the prediction first: `{given}` comes from the data, `{target}` from the model",
                repair=Repair("exchange the arguments", draft, Applicability.UNSAFE),
            )

    def _is_label(self, value: cst.BaseExpression, depth: int) -> bool:
        """Whether a value surely is an item of a loader's batch, as it is, or in another place, type or shape."""
        while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
            if self.names.method(value) not in _MOVING:
                return False
            value = value.func.value
        found = self.facts.reaching.bindings(value) if isinstance(value, cst.Name) else []
        if not found or depth > 3:
            return False
        for each in found:
            if each.kind is Kind.LOOP and each.path and each.value is not None:
                if not self.values.is_loader(self.values.iterated(each.value)):
                    return False
                continue
            part = each.value
            for place in each.path:
                whole = isinstance(part, cst.Tuple) and place < len(part.elements)
                part = part.elements[place].value if isinstance(part, cst.Tuple) and whole else None
            if each.kind is not Kind.ASSIGN or part is None or not self._is_label(part, depth + 1):
                return False
        return True

    def _is_prediction(self, value: cst.BaseExpression) -> bool:
        """Whether a value surely is what a module gives."""
        sources = self.facts.reaching.sources(value)
        return bool(sources) and all(
            isinstance(each, cst.Call) and self.values.is_module(each.func) for each in sources
        )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses that get a piece of a batch for the prediction, and what hangs on parameters for the target."""
        for event in entry.of(LossComputed):
            given, target = event.input, event.target
            if event.wants == "any" or not isinstance(given, Tensor) or not isinstance(target, Tensor):
                continue
            drawn = given.role == "batch" and not given.graph and not given.escaped
            if drawn and target.graph and target.role != "batch" and not target.escaped:
                yield Fault.at(event, f"`{event.function}` takes the prediction first, and is given the data first")
