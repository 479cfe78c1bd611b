from __future__ import annotations

import libcst as cst

from lightlint.check import Check

_AUTOCAST = {"torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast"}


class BackwardUnderAutocast(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.method(call) != "backward" or self.names.of(call.func) is not None:
            return
        for above in self.tree.ancestors(call):
            if isinstance(above, (cst.FunctionDef, cst.Lambda)):
                return
            if isinstance(above, cst.With) and any(self.names.call(each.item) in _AUTOCAST for each in above.items):
                self.report(call, "the backward pass runs under autocast, which chooses its dtypes without it")
                return
