from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.finding import Applicability
from lightlint.fixes.edits import remove_argument
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_GRAPHS = {"CUDAGraph", "make_graphed_callables", "graph"}
_MESSAGE = "`set_to_none=False` keeps every gradient in memory"


class GradientsZeroedInPlace(Check):
    """A visitor, too: who reads `zero_grad(set_to_none=False)` needs not know of what it is a method."""

    def visit_Call(self, call: cst.Call) -> None:
        if self.names.method(call) != "zero_grad" or not isinstance(call.func, cst.Attribute):
            return
        arg = self.names.argument(call, "set_to_none")
        if arg is not None and self.names.constant(arg.value) is False and not self._has_graphs():
            self.report(call, _MESSAGE, repair=self._repair(call))

    def _has_graphs(self) -> bool:
        """Whether the file records CUDA graphs, whose gradients must stay where they are."""
        return any(each.attr.value in _GRAPHS for each in self.tree.all(cst.Attribute))

    def _repair(self, call: cst.Call) -> Repair | None:
        arg = self.names.argument(call, "set_to_none")
        if arg is None:
            return None
        draft = remove_argument(self.code, call, arg)
        return Repair("drop `set_to_none=False`", draft, Applicability.UNSAFE, "torch>=2.0")

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Calls of `zero_grad` that are told to keep gradients, however they are told."""
        for event in entry.calls.get(".zero_grad", ()):
            if is_constant(event.given.sure().get("set_to_none"), False) and not self._has_graphs():
                yield Fault.of(event, _MESSAGE)

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        return self._repair(node) if isinstance(node, cst.Call) else None
