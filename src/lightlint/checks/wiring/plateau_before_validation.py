from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.configured import Scheduler
from lightlint.facts.file import FileFacts
from lightlint.facts.names import UNKNOWN
from lightlint.facts.training import Run

_VALIDATION = ("validation_", "on_validation_")


class PlateauBeforeValidation(Check):
    def visit_Module(self, module: cst.Module) -> None:
        seen: set[cst.CSTNode] = set()
        for run in self.facts.training.runs:
            given = self.names.argument(run.trainer, "check_val_every_n_epoch") if run.trainer is not None else None
            period = self.names.constant(given.value) if given is not None else None
            if given is None or given in seen or run.entry != "fit" or not isinstance(period, int) or period < 2:
                continue
            seen.add(given)
            key = self._key(run, period)
            if key:
                name = (run.module or "").rpartition(".")[2]
                self.report(
                    given,
                    f"the `ReduceLROnPlateau` of `{name}` asks for `{key}` before the first validation, in epoch {period}",
                )

    def _key(self, run: Run, period: int) -> str:
        """The metric of the validation that a plateau scheduler of the module asks for between validations."""
        found = self.facts.of_class(run.module) if run.module is not None else None
        if (
            found is None
            or found[0].training.automatic(found[1]) is not True
            or not found[0].classes.complete(found[1])
        ):
            return ""
        facts, node = found
        for returned in facts.configured.of_class(node):
            for scheduler in returned.schedulers:
                key = _asked(facts, scheduler, period)
                if key and _is_validations(facts, node, key):
                    return key
        return ""


def _asked(facts: FileFacts, scheduler: Scheduler, period: int) -> str:
    """The key a plateau scheduler is stepped with in epochs without a validation; empty if it never is."""
    plateau = scheduler.origins and all(facts.configured.is_plateau(each) for each in scheduler.origins)
    entries = scheduler.config or scheduler.beside
    if not plateau or entries is None or not entries.closed:
        return ""
    own = scheduler.config.values if scheduler.config is not None else {}
    defaults = {"interval": "epoch", "frequency": 1, "strict": True}
    settings = {name: facts.names.constant(own[name]) if name in own else value for name, value in defaults.items()}
    frequency = settings["frequency"]
    if UNKNOWN in settings.values() or settings["interval"] != "epoch" or settings["strict"] is not True:
        return ""
    if not isinstance(frequency, int) or frequency % period == 0 or "monitor" not in entries.values:
        return ""
    return facts.monitors.only(entries.values["monitor"]) or ""


def _is_validations(facts: FileFacts, node: cst.ClassDef, key: str) -> bool:
    """Whether the validation logs a key, and surely nothing else does."""
    calls = facts.logs.of_class(node)
    if any(call.keys is None or not call.hooks for call in calls) or facts.classes.has_method(node, "log"):
        return False
    mine = [call for call in calls if call.keys and key in call.keys]
    return bool(mine) and all(hook.name.startswith(_VALIDATION) for call in mine for hook in call.hooks)
