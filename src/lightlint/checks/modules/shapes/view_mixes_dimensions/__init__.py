from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.checks.modules.shapes.view_mixes_dimensions.sizes import WrittenSizes
from lightlint.engine.events import DimensionsMixed

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ViewMixesDimensions(Check):
    def wants_passes(self) -> bool:
        return WrittenSizes(self).may_be_reordered()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Views that are given the sizes of a tensor's own dimensions in another order."""
        for event in entry.of(DimensionsMixed):
            if self._is_shift(self.node_of(event.site)):
                continue
            message = f"`{event.how}` puts the dimensions in another order without moving a number: rows of one become parts of another"
            yield Fault.at(event, message)

    def _is_shift(self, view: cst.CSTNode | None) -> bool:
        """Whether a view loses its first row and is viewed again: the relative shift of Transformer-XL, which moves
        each row one place further than the one above."""
        if not isinstance(view, cst.Call):
            return False
        statement = self.tree.statement(view)
        bound = self.tree.within(statement, cst.AssignTarget) if statement is not None else []
        targets = {self.names.key(each.target) for each in bound} - {""}
        owner = self.tree.owner(view)
        cut = [
            each
            for each in self.tree.own(owner, cst.Subscript)
            if (each.value is view or self.names.key(each.value) in targets) and self._drops_first(each)
        ]
        again = [
            each for each in self.tree.own(owner, cst.Call) if self.names.method(each).startswith(("view", "reshape"))
        ]
        order = self.tree.order(view)
        return bool(cut) and any(
            self.tree.order(each) > order or self.tree.contains(each, view) for each in again if each is not view
        )

    def _drops_first(self, part: cst.Subscript) -> bool:
        """Whether an index is `1:` in one dimension."""
        slices = [each.slice for each in part.slice if isinstance(each.slice, cst.Slice)]
        return any(
            each.lower is not None and self.names.constant(each.lower) == 1 and each.upper is None for each in slices
        )
