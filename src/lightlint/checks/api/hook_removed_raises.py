from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.api import lightning_api
from lightlint.facts.compat import is_versioned, removal_tier
from lightlint.facts.hooks import Owner
from lightlint.facts.overrides import owner_of

_REFUSED = {
    "training_epoch_end": "`fit` refuses",
    "validation_epoch_end": "`fit` and `validate` refuse",
    "test_epoch_end": "`test` refuses",
}


class HookRemovedRaises(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        name = function.name.value
        if name not in _REFUSED or owner_of(self.facts, function) is not Owner.MODULE:
            return
        tier = removal_tier(self.facts.lightning, lightning_api().lightning_module.removed[name].removed)
        if tier is None or is_versioned(self.facts, function):
            return
        target = self.facts.lightning.version.minor
        message = f"{_REFUSED[name]} a module that has `{name}` since Lightning 2.0 (target: {target})"
        self.report(function.name, message, tier=tier)
