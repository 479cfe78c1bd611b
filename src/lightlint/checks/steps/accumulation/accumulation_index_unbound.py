from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Stepped
from lightlint.facts.code.tree import Loop
from lightlint.facts.steps.accumulation import Window
from lightlint.finding import Applicability
from lightlint.fixes.edits import join, wrap

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

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
            self.report(window.modulo, _unbound(name), repair=self._repair(loop, window, bound=False))
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

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Steps that wait for a multiple of a name that nothing in the file binds."""
        for event in entry.of(Stepped):
            for test in event.where.conditions if event.where.turns else ():
                name = _counted(test.key)
                if name and not self._is_bound(name):
                    yield Fault(test.site, _unbound(name), calls=event.where.places)

    def _is_bound(self, name: str) -> bool:
        bindings = self.names.bindings
        named = [each for each in self.tree.all(cst.Name) if each.value == name and not self.names.is_word(each)]
        return (
            bool(bindings.stars)
            or not named
            or any(map(bindings.lookup, named))
            or any(map(bindings.is_builtin, named))
        )


def _unbound(name: str) -> str:
    return f"nothing binds `{name}`: the first batch that comes to this test raises NameError"


def _counted(key: Hashable) -> str:
    """The name without a value of which a test asks for multiples, as `i` of `(i + 1) % n == 0`; empty for none."""
    if not isinstance(key, tuple):
        return ""
    if key[:1] == ("%",):
        counter = key[1]
        while isinstance(counter, tuple) and counter[:1] in (("+",), ("-",)):
            counter = counter[1]
        return counter[1] if isinstance(counter, tuple) and len(counter) == 2 and counter[0] == "name" else ""
    return next((found for each in key if (found := _counted(each))), "")
