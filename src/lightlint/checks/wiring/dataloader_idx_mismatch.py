from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.classes import MODULE
from lightlint.facts.evaluation import Evaluation
from lightlint.facts.mentions import is_called_with_arguments
from lightlint.facts.overrides import taken
from lightlint.facts.versions import Version
from lightlint.fixes.edits import insert_default, insert_parameter

_STAGES = {
    "validation_step": "validation", "on_validation_batch_start": "validation", "on_validation_batch_end": "validation",
    "test_step": "test", "on_test_batch_start": "test", "on_test_batch_end": "test",
    "predict_step": "predict",
}  # fmt: skip


class DataloaderIdxMismatch(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        hook = function.name.value
        stage = _STAGES.get(hook)
        node = self.tree.class_of(function) if stage else None
        takes = taken(self.facts, function) if node is not None else None
        if node is None or takes is None or stage is None or not self.classes.is_a(node, MODULE):
            return
        index = takes.named("dataloader_idx")
        demands = index is not None and index.default is None
        free = index is None and not takes.takes_rest and not takes.takes_keywords and len(takes.required) <= 2
        if not (demands or free) or is_called_with_arguments(self.facts.project, self.facts.source, hook):
            return
        count = Evaluation(self.facts).loaders(node, stage)
        if demands and index is not None and count == 1:
            message = f"`{hook}` requires `dataloader_idx`, but there is one {stage} loader"
            last = takes.positional and takes.positional[-1] is index
            repair = Repair("give it the default 0", insert_default(self.code, index, "0")) if last else None
            self.report(index, message, repair=repair)
        elif free and count is not None and count > 1 and self.facts.lightning.surely_at_least(Version("2.0")):
            message = f"`{hook}` has no parameter `dataloader_idx`, but there are {count} {stage} loaders"
            fits = hook.endswith("_step") and len(takes.positional) == 2 and not takes.keyword_only
            draft = insert_parameter(self.code, function, "dataloader_idx=0") if fits else None
            self.report(function.name, message, repair=Repair("take `dataloader_idx=0`", draft))
