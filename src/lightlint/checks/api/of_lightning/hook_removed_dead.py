from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.lightning.overrides import class_api, is_stub, owner_of
from lightlint.facts.project.mentions import is_called
from lightlint.facts.releases.compat import is_versioned, removal_tier
from lightlint.finding import Tier


class HookRemovedDead(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        name = function.name.value
        owner = owner_of(self.facts, function)
        removed = class_api(owner).removed.get(name) if owner else None
        if removed is None or "silently never called" not in removed.effect or is_stub(function):
            return
        tier = removal_tier(self.facts.lightning, removed.removed)
        node = self.tree.class_of(function)
        if tier is None or node is None or not self.classes.complete(node) or is_versioned(self.facts, function):
            return
        if is_called(self.facts.project, self.facts.source, name):
            return
        target = self.facts.lightning.version.minor
        instead = f", the hook is now `{removed.replacement}`" if removed.replacement.isidentifier() else ""
        message = f"nothing calls `{name}` since Lightning {removed.removed.minor}{instead} (target: {target})"
        self.report(function.name, message, tier=None if tier is Tier.ERROR else Tier.NOTE)
