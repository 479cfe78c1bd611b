from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.evaluation import Evaluation
from lightlint.facts.keywords import entries
from lightlint.facts.logged_keys import listed, spellings_of
from lightlint.facts.monitors import Monitor
from lightlint.facts.training import Run
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace

_CLI = "lightning.cli.LightningCLI"
_LOADER = re.compile(r"/dataloader_idx_(\d+)$")


class MonitorNeverLogged(Check):
    def visit_Module(self, module: cst.Module) -> None:
        if self.facts.lightning.may_be_below("1.5"):
            return
        seen: set[cst.CSTNode] = set()
        for run in self.facts.training.runs:
            for monitor in self._monitors(run):
                if monitor.written not in seen:
                    seen.add(monitor.written)
                    self._look_at(run.module or "", monitor, run)
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

    def _look_at(self, module: str, monitor: Monitor, run: Run | None = None) -> None:
        found = self.facts.of_class(module)
        if found is None or monitor.key is None or monitor.key.startswith("lr-"):
            return
        logged = found[0].logged_keys.of_class(found[1])
        own = self.facts.logged_keys.beside
        if logged is None or own is None:
            return
        keys = logged | own
        spellings = spellings_of(monitor.key)
        if spellings & keys:
            where = ""
            if not spellings & own:
                inside = found[0].logged_keys
                where = inside.lost(found[1], spellings)
                if not where and run is not None and inside.is_per_loader(found[1], spellings):
                    where = self._by_loader(run, monitor.key)
            if where:
                name = found[1].name.value
                self.report(
                    monitor.written, f"`{monitor.watcher}` watches `{monitor.key}`, which `{name}` logs {where}"
                )
            return
        message = f"`{monitor.watcher}` watches `{monitor.key}`, and `{found[1].name.value}` logs {listed(keys)}"
        near = get_close_matches(monitor.key, sorted(keys), n=1, cutoff=0.7)
        self.report(monitor.written, message, repair=self._repair(monitor, near[0]) if near else None)

    def _by_loader(self, run: Run, key: str) -> str:
        """Under which names a key is logged for several validation loaders, if none of them is the one that is watched."""
        count = Evaluation(self.facts).of_fit(run) or 1
        number = _LOADER.search(key)
        if count < 2 or (number and int(number[1]) < count):
            return ""
        plain = _LOADER.sub("", key)
        return f"as `{plain}/dataloader_idx_0` and so on for each of {count} validation loaders only"

    def _repair(self, monitor: Monitor, key: str) -> Repair | None:
        if not isinstance(monitor.written, cst.SimpleString):
            return None
        quote = monitor.written.quote
        return Repair(
            f"watch `{key}`", replace(self.code, monitor.written, f"{quote}{key}{quote}"), Applicability.UNSAFE
        )
