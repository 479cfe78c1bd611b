"""How many DataLoaders a LightningModule is evaluated on, and with how many a Trainer validates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.classes import DATA_MODULE
from lightlint.facts.lengths import Lengths
from lightlint.facts.training import Run

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_LOADER = "torch.utils.data.DataLoader"
_GIVEN = {  # entry points by stage: the parameter that takes the loaders, and its position
    "validation": {"fit": ("val_dataloaders", 2), "validate": ("dataloaders", 1)},
    "test": {"test": ("dataloaders", 1)},
    "predict": {"predict": ("dataloaders", 1)},
}
_DEPTH = 4
_HOOK = {"validation": "val_dataloader", "test": "test_dataloader", "predict": "predict_dataloader"}


class Evaluation:
    """Loader counts of the modules of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._lengths = Lengths(facts)

    def loaders(self, node: cst.ClassDef, stage: str) -> int | None:
        """With how many loaders every run in sight evaluates a module; None where that is not certain."""
        facts = self._facts
        name = facts.names.defined(node)
        runs = [run for run in facts.training.runs if run.module == name and run.entry in _GIVEN[stage]]
        counts = {self._of_run(node, run, stage) for run in runs} - {0}
        if not runs:
            counts = {self._of_hook(node, _HOOK[stage])}
        return counts.pop() if len(counts) == 1 else None

    def of_fit(self, run: Run) -> int | None:
        """With how many loaders a call of `fit` validates, data modules and modules of other files included; None where unknown."""
        facts, (keyword, position) = self._facts, _GIVEN["validation"]["fit"]
        given = facts.names.argument(run.call, keyword, position)
        if facts.names.has_star(run.call) or given is not None:
            return self.count(given.value) if given is not None else None
        second = facts.names.argument(run.call, "train_dataloaders", 1)
        origin = facts.values.constructor(second.value) if second is not None else None
        positional = origin.name if origin is not None and facts.classes.name_is_a(origin.name, DATA_MODULE) else None
        if second is not None and positional is None and facts.names.argument(run.call, "datamodule") is None:
            return self._of_class(run.module) if facts.values.is_loader(second.value) else None
        has_data = facts.names.argument(run.call, "datamodule") is not None
        return self._of_class(run.data_module if has_data else positional or run.module)

    def _of_class(self, name: str | None) -> int | None:
        """Number of validation loaders that a class of this or another file returns."""
        found = self._facts.of_class(name) if name is not None else None
        return Evaluation(found[0])._of_hook(found[1], _HOOK["validation"]) if found is not None else None

    def _of_run(self, node: cst.ClassDef, run: Run, stage: str) -> int | None:
        """Number of loaders of one run, 0 for a run without evaluation."""
        facts, (keyword, position) = self._facts, _GIVEN[stage][run.entry]
        if facts.names.has_star(run.call):
            return None
        given = facts.names.argument(run.call, keyword, position)
        if given is not None:
            return self.count(given.value)
        data = facts.names.argument(run.call, "datamodule")
        if data is not None:
            local = facts.classes.local(run.data_module)
            return self._of_hook(local, _HOOK[stage]) if local is not None else None
        if facts.classes.has_method(node, _HOOK[stage]):
            return self._of_hook(node, _HOOK[stage])
        return 0 if run.entry == "fit" else None

    def _of_hook(self, node: cst.ClassDef, hook: str) -> int | None:
        """Number of loaders that a hook returns."""
        function = self._facts.classes.method(node, hook)
        if function is None or function.decorators:
            return None
        returns = self._facts.tree.own(function, cst.Return)
        counts = {self.count(each.value) if each.value is not None else None for each in returns}
        return counts.pop() if len(counts) == 1 else None

    def count(self, value: cst.BaseExpression, depth: int = 0) -> int | None:
        """Number of loaders in an expression: 1 for a DataLoader, the length of a list of them."""
        facts = self._facts
        held = self._lengths.items(value)
        if held is not None:
            single = depth < _DEPTH and all(self.count(each, depth + 1) == 1 for each, _ in held)
            return sum(times for _, times in held) or None if single else None
        if isinstance(value, cst.Dict):
            values = [e.value if isinstance(e, cst.DictElement) else None for e in value.elements]
            return len(values) if values and all(v and self.count(v, depth + 1) == 1 for v in values) else None
        if isinstance(value, cst.Name) and depth < _DEPTH:
            found = facts.bindings.lookup(value)
            bound = found[0].value if len(found) == 1 and not found[0].path else None
            if isinstance(bound, cst.Dict) and not self._lengths.is_changed(value.value):
                return self.count(bound, depth + 1)
        return 1 if facts.values.is_loader(value) else None
