from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.code.bindings import Kind
from lightlint.facts.data.workers import Method, Starter

_RUN = {Starter.SPAWN: ("fn", 0), Starter.PROCESS: ("target", 1)}
_TASKS = {"map", "map_async", "imap", "imap_unordered", "starmap", "starmap_async", "apply", "apply_async"}


class SpawnInNotebook(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if not self.facts.source.is_notebook:
            return
        starter = self.facts.workers.starter(call)
        if starter in _RUN:
            started, sent = call, self.names.argument(call, *_RUN[starter])
        elif self.names.method(call) in _TASKS and isinstance(call.func, cst.Attribute):
            pool = self.facts.workers.made(call.func.value)
            if pool is None or self.facts.workers.starter(pool) is not Starter.POOL:
                return
            started, sent = pool, self.names.argument(call, "func", 0)
        else:
            return
        if sent is None or self.facts.workers.method(started) not in {Method.SPAWN, Method.FORKSERVER}:
            return
        if self._is_in_cell(sent.value):
            name = self.code.text_of(sent.value)
            self.report(
                sent.value, f"a spawned process looks for `{name}` in a main module that the notebook does not have"
            )

    def _is_in_cell(self, sent: cst.BaseExpression) -> bool:
        """Whether a name means a function that a cell defines, and nothing else."""
        found = self.names.bindings.lookup(sent) if isinstance(sent, cst.Name) else []
        return bool(found) and all(each.kind is Kind.FUNCTION and each.scope is self.tree.module for each in found)
