from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.code.bindings import dotted_name
from lightlint.fixes.edits import replace_statement

_ROOMS = {"datasets", "models", "transforms"}


class TorchvisionSubmoduleAlias(Check):
    def visit_Import(self, statement: cst.Import) -> None:
        for alias in statement.names:
            package, _, room = dotted_name(alias.name).partition(".")
            if package == "torchvision" and room in _ROOMS and alias.evaluated_alias == room:
                self.report(
                    alias, f"`{room}` is imported under its own name by `as`", repair=self._repair(statement, room)
                )

    def _repair(self, statement: cst.Import, room: str) -> Repair | None:
        if len(statement.names) > 1:
            return None
        text = f"from torchvision import {room}"
        return Repair(f"write `{text}`", replace_statement(self.code, statement, text))
