from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import ViewRefused
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, RawEdit

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ViewOfPermuted(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Views that merge dimensions which a permutation has set apart."""
        for event in entry.of(ViewRefused):
            where = f"after `{event.after}`"
            yield Fault.of(event, f"`view` cannot merge dimensions that lie apart in memory {where}: a RuntimeError")

    def wants_passes(self) -> bool:
        calls = self.tree.all(cst.Call)
        merges = any(self.names.method(each) == "view" and len(each.args) > 1 for each in calls)
        return merges and any(self.names.method(each) in {"permute", "transpose"} for each in calls)

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        func = node.func if isinstance(node, cst.Call) else None
        if not isinstance(func, cst.Attribute) or func.attr.value != "view":
            return None
        edit = RawEdit(*self.facts.span(func.attr), "reshape")
        return Repair("copy with `reshape` where it must", Draft((edit,)), Applicability.SAFE)
