from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.releases.compat import removal_tier
from lightlint.facts.releases.old_uses import Used, old_uses
from lightlint.facts.releases.torch_api import OldName
from lightlint.finding import Applicability
from lightlint.fixes.drafts.renames import rename_to


class TorchRemovedName(Check):
    def visit_Import(self, statement: cst.Import) -> None:
        self._judge(statement)

    def visit_ImportFrom(self, statement: cst.ImportFrom) -> None:
        self._judge(statement)

    def visit_Attribute(self, attribute: cst.Attribute) -> None:
        self._judge(attribute)

    def visit_Call(self, call: cst.Call) -> None:
        self._judge(call)

    def _judge(self, node: cst.Import | cst.ImportFrom | cst.Attribute | cst.Call) -> None:
        for place, entry in old_uses(self.facts, node):
            tier = removal_tier(self.facts.torch, entry.torch_removed) if entry.torch_removed else None
            if tier and entry.removed:
                since = f"{entry.package} {entry.removed.minor}"
                state = "cannot be called" if entry.is_called_name else "is gone"
                target = f"torch {self.facts.torch.version.minor}"
                message = f"`{entry.name}` {state} since {since} (target: {target})"
                self.report(place, message, tier=tier, repair=self._repair(place, entry))

    def _repair(self, place: Used, entry: OldName) -> Repair | None:
        if not entry.replacement or not entry.fix:
            return None
        draft = rename_to(self.facts, place, entry.name, entry.replacement)
        since = (
            f"torch>={entry.torch_deprecated}" if entry.torch_deprecated else ""
        )  # what is told to use was there by then
        return Repair(f"write `{entry.replacement}`", draft, Applicability(entry.fix), since)
