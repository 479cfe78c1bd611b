from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import ScalarIndexed
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ScalarLossIndexed(Check):
    tells_of_old_code = True

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Elements asked of losses that are averaged or summed: these have no dimensions."""
        for event in entry.of(ScalarIndexed):
            loss = event.loss
            known = loss.reduction in ("mean", "sum") and not loss.mixed and not loss.escaped and not loss.guessed
            if known and not self.is_versioned(event):
                node = self.node_of(event.site)
                name = self._name(node) if node is not None else ""
                yield Fault.of(event, f"{name or 'the loss'} has no dimension to index: an IndexError")

    def _name(self, node: cst.CSTNode) -> str:
        held = _held(node)
        return f"`{self.code.text_of(held)}`" if held is not None else ""

    def repair(self, node: cst.CSTNode, _: Fault) -> Repair | None:
        held = _held(node)
        if held is None or not isinstance(node, cst.Subscript):
            return None
        draft = replace(self.code, node, f"{self.code.text_of(held)}.item()")
        return Repair("write `.item()`", draft, Applicability.UNSAFE)


def _held(node: cst.CSTNode) -> cst.Name | cst.Attribute | None:
    """What is indexed, without `.data`, where it has a name."""
    held = node.value if isinstance(node, cst.Subscript) else None
    if isinstance(held, cst.Attribute) and held.attr.value == "data":
        held = held.value
    return held if isinstance(held, (cst.Name, cst.Attribute)) else None
