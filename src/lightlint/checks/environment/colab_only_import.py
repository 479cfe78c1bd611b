from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.code.bindings import dotted_name


class ColabOnlyImport(Check):
    def visit_Import(self, statement: cst.Import) -> None:
        self._judge(statement, [dotted_name(alias.name) for alias in statement.names])

    def visit_ImportFrom(self, statement: cst.ImportFrom) -> None:
        if not statement.relative:
            room = dotted_name(statement.module)
            names = [] if isinstance(statement.names, cst.ImportStar) else statement.names
            self._judge(statement, [room, *(f"{room}.{dotted_name(alias.name)}" for alias in names)])

    def _judge(self, statement: cst.Import | cst.ImportFrom, names: list[str]) -> None:
        if not any(f"{name}.".startswith("google.colab.") for name in names):
            return
        if any(isinstance(above, (cst.Try, cst.If, cst.FunctionDef)) for above in self.tree.ancestors(statement)):
            return
        self.report(statement, "`google.colab` is there on Colab alone: everywhere else the import raises")
