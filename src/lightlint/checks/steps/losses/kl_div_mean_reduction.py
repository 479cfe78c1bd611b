from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import LossComputed
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class KlDivMeanReduction(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Divergences that are divided by the number of all elements."""
        for event in entry.of(LossComputed):
            named = event.function in ("kl_div", "KLDivLoss") and event.reduction == "mean"
            if not named or self._is_made_good(event):
                continue
            if isinstance(event.input, Tensor) and event.input.role == "log-probabilities":
                message = 'reduction "mean" divides the divergence by the number of classes, too'
                yield Fault(event.made or event.site, message, None, (event.site,))

    def _is_made_good(self, event: LossComputed) -> bool:
        """Whether the divergence is multiplied with the number of classes again."""
        node = self.node_of(event.site)
        above = self.tree.parent(node) if node is not None else None
        while isinstance(above, cst.BinaryOperation) and isinstance(above.operator, (cst.Multiply, cst.Divide)):
            factors = (above.left, above.right) if isinstance(above.operator, cst.Multiply) else ()
            if any(each is not node and _CLASSES.search(self.code.text_of(each)) for each in factors):
                return True
            node, above = above, self.tree.parent(above)
        return False


_CLASSES = re.compile(r"(?i)class|vocab|shape\[-?1\]|size\((?:dim=)?-?1\)")
