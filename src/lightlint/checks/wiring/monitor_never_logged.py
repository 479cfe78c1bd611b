from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.file import FileFacts
from lightlint.facts.keywords import entries
from lightlint.facts.monitors import Monitor
from lightlint.facts.training import Run
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace

_CLI = "lightning.cli.LightningCLI"
_DERIVED = re.compile(r"(?:/dataloader_idx_\d+|_step|_epoch)$")
_AFTER = ("test_", "on_test_", "predict_", "on_predict_")
_SHOWN = 6


class MonitorNeverLogged(Check):
    def visit_Module(self, module: cst.Module) -> None:
        if self.facts.lightning.may_be_below("1.5"):
            return
        seen: set[cst.CSTNode] = set()
        for run in self.facts.training.runs:
            for monitor in self._monitors(run):
                if monitor.written not in seen:
                    seen.add(monitor.written)
                    self._look_at(run.module or "", monitor)
        for trained, monitor in self._of_cli():
            self._look_at(trained, monitor)

    def _of_cli(self) -> Iterator[tuple[str, Monitor]]:
        """The class that a LightningCLI trains, with what the callbacks among its Trainer's defaults watch."""
        for call in self.tree.all(cst.Call):
            defaults = self.names.argument(call, "trainer_defaults")
            model = self.names.argument(call, "model_class", 0)
            derived = self.names.argument(call, "subclass_mode_model")
            if self.names.call(call) != _CLI or defaults is None or model is None or derived is not None:
                continue
            for entry in entries(self.facts, defaults.value, call):
                listed = entry.value.elements if isinstance(entry.value, (cst.List, cst.Tuple)) else ()
                values = [each.value for each in listed] or [entry.value]
                made = [source for each in values for source in self.facts.reaching.sources(each)]
                calls = [each for each in made if isinstance(each, cst.Call)]
                known = len(calls) == len(made) and all(
                    (self.names.call(each) or "").startswith("lightning.callbacks.") for each in calls
                )
                for each in calls if entry.name == "callbacks" and known else ():
                    monitor = self.facts.monitors.of_callback(each)
                    if monitor is not None:
                        yield self.names.of(model.value) or "", monitor

    def _monitors(self, run: Run) -> list[Monitor]:
        """What is watched in a run whose callbacks are all in sight and are Lightning's or this file's."""
        made = self.facts.training.callbacks(run.trainer) if run.trainer is not None and run.entry == "fit" else None
        if made is None or run.module is None:
            return []
        names = [self.names.of(call.func) or "" for call in made]
        if not all(name.startswith("lightning.callbacks.") or self.classes.local(name) for name in names):
            return []
        found = [monitor for call in made if (monitor := self.facts.monitors.of_callback(call))]
        local = self.classes.local(run.module)
        return found + (list(self.facts.monitors.of_schedulers(local)) if local is not None else [])

    def _look_at(self, module: str, monitor: Monitor) -> None:
        found = self.facts.of_class(module)
        if found is None or monitor.key is None or monitor.key.startswith("lr-"):
            return
        logged = found[0].logged_keys.of_class(found[1])
        own = self.facts.logged_keys.beside
        if logged is None or own is None:
            return
        keys = logged | own
        spellings = {monitor.key, _DERIVED.sub("", monitor.key), _DERIVED.sub("", _DERIVED.sub("", monitor.key))}
        if spellings & keys:
            where = _only_elsewhere(*found, spellings) if not spellings & own else ""
            if where:
                name = found[1].name.value
                self.report(
                    monitor.written, f"`{monitor.watcher}` watches `{monitor.key}`, which `{name}` logs {where}"
                )
            return
        shown = ", ".join(f"`{key}`" for key in sorted(keys)[:_SHOWN]) or "nothing"
        more = ", ..." if len(keys) > _SHOWN else ""
        message = f"`{monitor.watcher}` watches `{monitor.key}`, and `{found[1].name.value}` logs {shown}{more}"
        near = get_close_matches(monitor.key, sorted(keys), n=1, cutoff=0.7)
        self.report(monitor.written, message, repair=self._repair(monitor, near[0]) if near else None)

    def _repair(self, monitor: Monitor, key: str) -> Repair | None:
        if not isinstance(monitor.written, cst.SimpleString):
            return None
        quote = monitor.written.quote
        return Repair(
            f"watch `{key}`", replace(self.code, monitor.written, f"{quote}{key}{quote}"), Applicability.UNSAFE
        )


def _only_elsewhere(facts: FileFacts, node: cst.ClassDef, spellings: set[str]) -> str:
    """Where a module logs a key, if that is nowhere from where callbacks of a fit get it; else empty."""
    calls = [call for call in facts.logs.of_class(node) if call.keys and call.keys & spellings]
    names = {hook.name for call in calls for hook in call.hooks}
    if not calls or not all(call.hooks for call in calls):
        return ""
    if all(name.startswith(_AFTER) for name in names):
        return "in tests only"
    steps = names <= {"validation_step", "test_step"}
    if steps and all(facts.logs.argument(call.call, "on_epoch") is False for call in calls):
        return "for single batches of the validation only (`on_epoch=False`)"
    return ""
