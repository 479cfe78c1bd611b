from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.explore.queries import in_batch
from lightlint.facts.hooks import Hook
from lightlint.fixes.edits import drop_statement

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class EmptyCacheInLoop(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.of(call.func) != "torch.cuda.empty_cache" or self._is_rescue(call):
            return
        place = self.loops.per_batch(call)
        if place is None:
            return
        where = f"each `{place.name}`" if isinstance(place, Hook) else "each batch"
        self.report(
            call,
            f"`empty_cache()` in {where} hands the allocator's blocks back to the driver",
            repair=self._repair(call),
        )

    def _is_rescue(self, call: cst.Call) -> bool:
        return any(isinstance(above, cst.ExceptHandler) for above in self.tree.ancestors(call))

    def _repair(self, call: cst.Call) -> Repair | None:
        statement = self.tree.statement(call)
        if not isinstance(statement, cst.Expr) or statement.value is not call:
            return None
        return Repair("drop the call", drop_statement(self.code, statement))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Calls that come with each batch, as far as tests in sight decide."""
        for event in entry.calls.get("torch.cuda.empty_cache", ()):
            steady = all(each.known and "periodic" not in each.traits for each in event.where.conditions)
            if in_batch(event.where) and steady:
                yield Fault.of(event, "`empty_cache()` in each batch hands the allocator's blocks back to the driver")

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        return self._repair(node) if isinstance(node, cst.Call) else None
