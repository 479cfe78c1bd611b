from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.ranks.world import Ranks
from lightlint.facts.steps.rescues import OUT_OF_MEMORY, Rescue
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import Draft, RawEdit, insert_after, join


class TrainingStepSwallowsException(Check):
    def visit_ExceptHandler(self, handler: cst.ExceptHandler) -> None:
        rescue = next((each for each in self.facts.rescues.all if each.handler is handler), None)
        if rescue is None:
            return
        ranks = self.facts.world.lightning if rescue.loop is None else self.facts.world.raw
        if rescue.loop is not None and ranks is Ranks.ONE:
            return  # leaving out a batch of a plain loop on one device is the author's choice
        name = f"`except {self.code.text_of(handler.type)}`" if handler.type else "a bare `except`"
        start, _ = self.facts.span(handler)
        end = self.facts.span(handler.type)[1] if handler.type else start + len("except")
        self.report_span(
            start,
            end,
            f"{name} drops the failing batch and hides why"
            if ranks is Ranks.ONE
            else f"{name} takes the failing rank out of the step that the others are in, and hides why",
            tier=self._tier(rescue, ranks),
            repair=Repair("raise the exception again", self._draft(rescue), Applicability.UNSAFE),
        )

    def _tier(self, rescue: Rescue, ranks: Ranks) -> Tier:
        if ranks is not Ranks.ONE:
            return Tier.ERROR
        return Tier.NOTE if rescue.caught and set(rescue.caught) <= OUT_OF_MEMORY else Tier.WARNING

    def _draft(self, rescue: Rescue) -> Draft | None:
        """`raise` in the place of what goes on; behind the handler's last statement where control passes its end."""
        drafts: list[Draft | None] = [self._raise(each) for each in rescue.exits]
        if rescue.falls_through:
            body = rescue.handler.body
            last = body.body[-1]
            small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
            if isinstance(small, cst.Pass):
                drafts.append(self._raise(small))
            elif isinstance(body, cst.IndentedBlock) and isinstance(last, cst.BaseStatement):
                drafts.append(insert_after(self.code, last, "raise"))
            else:
                return None
        return join(*drafts)

    def _raise(self, statement: cst.BaseSmallStatement) -> Draft:
        return Draft((RawEdit(*self.facts.span(statement), "raise"),))
