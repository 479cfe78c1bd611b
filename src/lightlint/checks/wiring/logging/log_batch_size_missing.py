from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.lightning.hooks import Owner
from lightlint.facts.releases.api import lightning_api

_GRAPHS = ("torch_geometric.data.", "dgl.")
_STEPS = {"training_step", "validation_step", "test_step"}


class LogBatchSizeMissing(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if not self.facts.logs.is_log(call) or self.facts.lightning.may_be_below("1.5"):
            return
        if self.facts.logs.argument(call, "batch_size") is not None:
            return
        function = self.tree.function(call)
        hook = self.hooks.of(function) if function is not None else None
        if function is None or hook is None or hook.owner is not Owner.MODULE or hook.name not in _STEPS:
            return
        kind = self._batch(function)
        on_epoch = self.facts.logs.argument(call, "on_epoch")
        counts = on_epoch is True or (on_epoch is None and hook.name in lightning_api().log_default_on_epoch)
        if kind and counts:
            self.report(
                call,
                f"no `batch_size` for a batch that is a `{kind}`: its nodes are counted instead, and the mean is weighted by them",
            )

    def _batch(self, function: cst.FunctionDef) -> str:
        """The graph class that a step's batch is annotated with, empty for all others."""
        parameters = function.params.params[1:2]
        annotation = parameters[0].annotation if parameters else None
        name = self.names.of(annotation.annotation) if annotation is not None else None
        return name.rpartition(".")[2] if name and name.startswith(_GRAPHS) else ""
