from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.classes import DATA_MODULE
from lightlint.facts.mentions import is_changed_elsewhere
from lightlint.facts.stages import unset
from lightlint.facts.training import Run

_HOOKS = {"validate": "val_dataloader", "test": "test_dataloader", "predict": "predict_dataloader"}
_BEFORE = {"setup", "prepare_data", "train_dataloader", *_HOOKS.values()}


class StageWithoutData(Check):
    def visit_Module(self, module: cst.Module) -> None:
        runs = [each for each in self.facts.training.runs if each.data_module is not None]
        for run in runs:
            others = {each.entry for each in runs if each.data_module == run.data_module}
            if run.entry in _HOOKS and others == {run.entry}:
                self._look_at(run)

    def _look_at(self, run: Run) -> None:
        """A run of an object that no other stage of this file, and no call by hand, sets up."""
        called = {self.names.method(each) for each in self.tree.all(cst.Call) if isinstance(each.func, cst.Attribute)}
        given = self.names.argument(run.call, "datamodule")
        origin = self.values.constructor(given.value) if given is not None else None
        if not _BEFORE.isdisjoint(called) or "fit" in called or origin is None or origin.call is None or given is None:
            return
        found = self.facts.of_class(run.data_module or "")
        if found is None:
            return
        facts, node = found
        if not facts.classes.complete(node) or DATA_MODULE not in facts.classes.base_names(node):
            return
        missing = unset(facts, node, _HOOKS[run.entry], run.entry)
        set_here = {
            each.attr.value
            for each in self.tree.all(cst.Attribute)
            if isinstance(self.tree.parent(each), cst.AssignTarget)
        }
        if missing and is_changed_elsewhere(self.facts.project, self.facts.source, missing[0].attr.value):
            return
        if missing and (facts is self.facts or missing[0].attr.value not in set_here):
            name, hook = missing[0].attr.value, _HOOKS[run.entry]
            message = f"`{hook}` reads `{name}`, which `setup` of `{node.name.value}` does not set for `{run.entry}`"
            self.report(given.value, f"{message}: it raises")
