from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.failures import is_expected
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import insert_argument

_FUNCTIONS = {f"torch.nn.functional.{name}" for name in ("softmax", "log_softmax", "softmin")}
_MODULES = {f"torch.nn.{name}" for name in ("Softmax", "LogSoftmax", "Softmin")}


class SoftmaxWithoutDim(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.of(call.func) or ""
        position = 0 if name in _MODULES else 1
        if name not in _FUNCTIONS | _MODULES or self.names.has_star(call):
            return
        given = self.names.argument(call, "dim", position)
        if given is not None and self.names.constant(given.value) is not None:
            return
        if is_expected(self.tree, self.names, call):
            return
        short = name.rpartition(".")[2]
        draft = insert_argument(self.code, call, "dim=-1") if given is None else None
        self.report(
            call,
            f"`{short}` without `dim` picks one by the number of dimensions: 0 for 1 and 3 of them, else 1",
            repair=Repair("normalise over the last dimension", draft, Applicability.UNSAFE),
            tier=Tier.WARNING,
        )
