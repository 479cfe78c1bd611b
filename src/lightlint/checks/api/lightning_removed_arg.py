from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.api import RemovedName, lightning_api
from lightlint.facts.compat import is_versioned, removal_tier
from lightlint.facts.training import ENTRY_POINTS
from lightlint.fixes.edits import replace_argument_name

_CALLBACKS = "lightning.callbacks."


class LightningRemovedArg(Check):
    def visit_Call(self, call: cst.Call) -> None:
        owner = self._owner(call)
        if owner is None or is_versioned(self.facts, call):
            return
        target = self.facts.lightning.version.minor
        for arg in call.args:
            removed = self._removed(owner, arg.keyword.value) if arg.keyword else None
            tier = removal_tier(self.facts.lightning, removed.removed) if removed else None
            if removed and tier:
                since = removed.removed.minor
                message = f"`{owner}` has no argument `{removed.name}` since Lightning {since} (target: {target})"
                self.report(arg, message, tier=tier, repair=self._repair(arg, removed))
        required = lightning_api().required_since.get((owner, "monitor"))
        if required and not call.args and (tier := removal_tier(self.facts.lightning, required)):
            message = f"`{owner}` requires `monitor` since Lightning {required.minor} (target: {target})"
            self.report(call, message, tier=tier)

    def _owner(self, call: cst.Call) -> str | None:
        """`fit`, `log`, `ModelCheckpoint`: what a call surely calls of Lightning, None for all else."""
        name = self.names.of(call.func) or ""
        if name.startswith(_CALLBACKS):
            return name.removeprefix(_CALLBACKS)
        method = self.names.method(call)
        if method in ENTRY_POINTS and any(run.call is call for run in self.facts.training.runs):
            return method
        return "log" if method in {"log", "log_dict"} and self.facts.logs.is_log(call) else None

    def _removed(self, owner: str, keyword: str) -> RemovedName | None:
        api = lightning_api()
        if owner == "log":
            return api.log_kwargs_removed.get(keyword)
        entries = (*api.call_kwargs_removed, *api.callback_arguments_removed)
        return next((each for each in entries if each.owner == owner and each.name == keyword), None)

    def _repair(self, arg: cst.Arg, removed: RemovedName) -> Repair | None:
        safe = removed.autofix == "safe" or removed.name in {"period", "every_n_val_epochs"}
        if not safe or not removed.replacement.isidentifier():
            return None
        return Repair(f"rename to `{removed.replacement}`", replace_argument_name(self.code, arg, removed.replacement))
