from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.accumulation import Window
from lightlint.facts.tree import Loop
from lightlint.finding import Applicability
from lightlint.fixes.edits import join, wrap

_COUNTING = {"builtins.enumerate", "builtins.range", "builtins.zip", "itertools.count"}


class AccumulationIndexUnbound(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if not self.facts.accumulation.is_step(call):
            return
        window = self.facts.accumulation.window(call)
        loop = self.loops.batch_loop(call)
        if window is None or loop is None or not isinstance(window.counter, cst.Name):
            return
        name = window.counter.value
        if self.facts.accumulation.is_unbound(window):
            message = f"nothing binds `{name}`: the first batch that comes to this test raises NameError"
            self.report(window.modulo, message, repair=self._repair(loop, window, bound=False))
        elif self.facts.accumulation.is_left_over(window, loop):
            message = f"this loop never changes `{name}`: with the value it had before, every batch steps or none does"
            self.report(window.modulo, message, repair=self._repair(loop, window, bound=True))

    def _repair(self, loop: Loop, window: Window, *, bound: bool) -> Repair | None:
        """Count the batches with `enumerate`: from 1 where the test adds nothing, so that the first window is a full one."""
        if not isinstance(loop, cst.For) or loop.asynchronous or self.names.call(loop.iter) in _COUNTING:
            return None
        if self.names.bindings.lookup_in("enumerate", self.tree.scope(loop)) or window.shift not in {0, 1}:
            return None
        name = self.tree.module.code_for_node(window.counter)
        start = "" if window.shift else ", start=1"
        draft = join(
            wrap(self.code, loop.target, f"{name}, ", ""), wrap(self.code, loop.iter, "enumerate(", f"{start})")
        )
        exact = not bound and window.shift == 1
        return Repair(f"count the batches in `{name}`", draft, Applicability.SAFE if exact else Applicability.UNSAFE)
