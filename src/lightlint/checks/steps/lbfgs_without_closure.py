from __future__ import annotations

import libcst as cst

from lightlint.check import Check

_LBFGS = {"torch.optim.LBFGS", "torch.optim.lbfgs.LBFGS"}


class LbfgsWithoutClosure(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.method(call) != "step" or call.args or not isinstance(call.func, cst.Attribute):
            return
        origins = self.values.origins(call.func.value)
        if origins and all(each.name in _LBFGS for each in origins):
            self.report(call, "`LBFGS.step` needs a closure that computes the loss anew: a TypeError without one")
