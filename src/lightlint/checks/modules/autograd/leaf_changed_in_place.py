from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import LeafChanged
from lightlint.explore.questions.certain import anyhow

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LeafChangedInPlace(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Leaves that are changed in place while autograd records."""
        changed = (each for each in entry.of(LeafChanged) if not each.leaf.parameter and not each.leaf.escaped)
        for event in anyhow(changed):
            span = self.facts.rehearsed.span(event.site)
            nodes = [n for n in self.tree.all(cst.AugAssign, cst.Call) if self.facts.positions.span(n) == span]
            if nodes and not any(map(self._is_tested, nodes)):
                message = "this is a leaf that requires a gradient: changing it in place raises outside of `no_grad()`"
                yield Fault.of(event, message)

    def _is_tested(self, node: cst.CSTNode) -> bool:
        """Whether an error is caught or expected."""
        return any(
            (isinstance(above, cst.Try) and above.handlers) or (isinstance(above, cst.With) and self._expects(above))
            for above in self.tree.ancestors(node)
        )

    def _expects(self, block: cst.With) -> bool:
        return any(
            self.names.method(item.item) in {"raises", "assertRaises", "assertRaisesRegex"} for item in block.items
        )
