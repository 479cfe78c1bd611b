from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.failures import is_expected
from lightlint.finding import Applicability, Tier
from lightlint.fixes.dimensions import dimensions_before, dimensions_of, picked
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
        self.report(
            call,
            f"`{short}` without `dim` picks one by the number of dimensions: 0 for 1 and 3 of them, else 1",
            repair=self._repair(call, is_module=name in _MODULES) if given is None else None,
            tier=Tier.WARNING,
        )

    def _repair(self, call: cst.Call, *, is_module: bool) -> Repair | None:
        """Write what torch picks, where the dimensions of what comes in are known."""
        if is_module:
            dimensions = dimensions_before(self.facts, call)
        else:
            values = self.names.argument(call, "input", 0)
            dimensions = dimensions_of(self.facts, values.value) if values is not None else None
        if dimensions is None:
            return None
        text = f"dim={picked(dimensions)}"
        return Repair(
            f"write `{text}`, which torch picks here", insert_argument(self.code, call, text), Applicability.UNSAFE
        )
