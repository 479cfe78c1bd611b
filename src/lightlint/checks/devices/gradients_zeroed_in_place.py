from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability
from lightlint.fixes.edits import remove_argument

_GRAPHS = {"CUDAGraph", "make_graphed_callables", "graph"}


class GradientsZeroedInPlace(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.method(call) != "zero_grad" or not isinstance(call.func, cst.Attribute):
            return
        arg = self.names.argument(call, "set_to_none")
        if arg is None or self.names.constant(arg.value) is not False or self._has_graphs():
            return
        draft = remove_argument(self.code, call, arg)
        repair = Repair("drop `set_to_none=False`", draft, Applicability.UNSAFE, "torch>=2.0")
        self.report(call, "`set_to_none=False` keeps every gradient in memory", repair=repair)

    def _has_graphs(self) -> bool:
        """Whether the file records CUDA graphs, whose gradients must stay where they are."""
        return any(each.attr.value in _GRAPHS for each in self.tree.all(cst.Attribute))
