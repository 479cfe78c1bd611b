from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.remade import Remade


class PersistentLoaderMadeAnew(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if call not in self.facts.datasets.loaders or not self.facts.workers.persist(call):
            return
        if self.facts.workers.count(call) != 0 and Remade(self.facts).is_remade(call):
            self.report(
                call, "`persistent_workers` keeps no worker: the loop around makes this loader anew in every round"
            )
