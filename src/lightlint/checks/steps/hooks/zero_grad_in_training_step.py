from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Cleared, Configured
from lightlint.explore.questions.queries import in_sight
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import drop_statement
from lightlint.values.core import Unknown
from lightlint.values.training import Optimizer

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class ZeroGradInTrainingStep(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients that a step clears, which Lightning clears and adds up by itself."""
        for path in entry.paths:
            by_hand = any(each.via != "lightning" and each.where.hook == "training_step" for each in path.of(Backward))
            for event in path.of(Cleared) if not by_hand else []:
                if event.where.hook == "training_step" and not event.implicit and _is_of_lightning(path, event):
                    every = self._accumulated()
                    gathered = f"drops what `accumulate_grad_batches={every}` gathers"
                    effect = gathered if every else "repeats what Lightning does"
                    message = f"`{self._spelled(event)}` in a step that Lightning optimizes {effect}"
                    yield Fault.at(event, message, tier=Tier.WARNING if every else Tier.NOTE)

    def _spelled(self, event: Cleared) -> str:
        call = self.node_of(event.site)
        plain = isinstance(call, cst.Call) and self.names.method(call) == "zero_grad"
        return self.code.text_of(call.func) if isinstance(call, cst.Call) and plain else "zero_grad"

    def _accumulated(self) -> int:
        """Over how many batches a Trainer in sight adds gradients up, 0 if none does."""
        values = [each.arguments.get("accumulate_grad_batches") for each in self.facts.world.trainers]
        return max((value for value in values if isinstance(value, int) and value > 1), default=0)

    def repair(self, node: cst.CSTNode, _: Fault) -> Repair | None:
        statement = self.tree.parent(node)
        if not isinstance(statement, cst.Expr):
            return None
        return Repair("drop the call", drop_statement(self.code, statement), Applicability.UNSAFE)


def _is_of_lightning(path: Path, event: Cleared) -> bool:
    """Whether gradients are cleared of a module that Lightning optimizes, or of what it is optimized with."""
    for each in path.of(Configured):
        by = event.by.wraps or event.by if isinstance(event.by, Optimizer) else event.by
        surely = not isinstance(each.module.attributes.get("automatic_optimization"), Unknown)
        if each.automatic and surely and by is not None and (by is each.module or by in each.optimizers):
            return in_sight([each.module])
    return False
