from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.releases.compat import is_versioned, removal_tier
from lightlint.facts.versions.versions import Version
from lightlint.finding import Applicability
from lightlint.fixes.draft import Draft
from lightlint.fixes.edits import insert_argument, join, wrap

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_RAISES_SINCE = Version("2.0")
_POSITION = 9


class StftReturnComplexUnset(Check):
    asks_rest = frozenset(["stft"])

    def visit_Call(self, call: cst.Call) -> None:
        if self.names.of(call.func) != "torch.stft" or self.names.has_star(call):
            return
        if self.names.argument(call, "return_complex", _POSITION) is not None or is_versioned(self.facts, call):
            return
        tier = removal_tier(self.facts.torch, _RAISES_SINCE)
        if tier is not None:
            message = f"`stft` of real values raises without `return_complex` since torch {_RAISES_SINCE.minor}"
            repair = Repair("keep the real layout of old", self._draft(call), Applicability.UNSAFE, "torch>=1.7")
            self.report(call, message, tier=tier, repair=repair)

    def _draft(self, call: cst.Call) -> Draft | None:
        """The complex result, seen as pairs of real numbers, as torch 1.x gave it."""
        func = call.func
        if not isinstance(func, cst.Attribute):
            return None
        room = self.code.text_of(func.value)
        inserted = insert_argument(self.code, call, "return_complex=True")
        return join(wrap(self.code, call, f"{room}.view_as_real(", ")"), inserted)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        tier = removal_tier(self.facts.torch, _RAISES_SINCE)
        calls = entry.calls.get("torch.stft", ()) if tier else ()
        told = {event.site for event in calls if event.argument("return_complex", _POSITION) is not None}
        for event in calls:  # one that says it behind a test on the version, and not without, is right
            if event.site not in told and event.given.exact and not self.is_versioned(event):
                message = f"`stft` of real values raises without `return_complex` since torch {_RAISES_SINCE.minor}"
                yield Fault.of(event, message, tier=tier)
