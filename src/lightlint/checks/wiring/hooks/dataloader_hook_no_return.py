from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.lightning.hooks import LOADERS
from lightlint.facts.lightning.overrides import is_changed, is_stub, owner_of


class DataloaderHookNoReturn(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        name = function.name.value
        if (
            name not in LOADERS
            or is_changed(self.facts, function)
            or is_stub(function)
            or owner_of(self.facts, function) is None
        ):
            return
        leaves: list[cst.CSTNode] = [*self.tree.own(function, cst.Yield), *self.tree.own(function, cst.Raise)]
        if leaves or not self.tree.own(function, cst.Call):
            return
        if all(each.value is None for each in self.tree.own(function, cst.Return)):
            self.report(function.name, f"`{name}` returns nothing")
