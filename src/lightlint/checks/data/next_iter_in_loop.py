from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.hooks import Hook


class NextIterInLoop(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) != "builtins.next" or not call.args:
            return
        inner = call.args[0].value
        if not isinstance(inner, cst.Call) or self.names.call(inner) != "builtins.iter" or not inner.args:
            return
        loader, place = inner.args[0].value, self.loops.per_batch(call)
        if place is None or not self.values.is_loader(loader) or self._is_new(loader, place) or self._is_rare(call):
            return
        if not isinstance(place, Hook) and not self.facts.steps.updates(place):
            return  # a batch to look at, as for a plot of the gradients of several models
        self.report(
            call, f"each step starts `{self.code.text_of(loader)}` anew for one batch: no step gets the second one"
        )

    def _is_rare(self, call: cst.Call) -> bool:
        """Whether a test, or an exception (a new round after StopIteration), lets only some steps get to the call."""
        loops = self.tree.loops(call)
        tests = [test for test, _ in self.facts.conditions(call)]
        rescued = any(isinstance(above, cst.ExceptHandler) for above in self.tree.ancestors(call))
        return rescued or any(not loops or self.tree.contains(loops[0].body, test) for test in tests)

    def _is_new(self, loader: cst.BaseExpression, place: cst.CSTNode | Hook) -> bool:
        """Whether each step has a loader of its own: the loop binds its name, or makes it."""
        if isinstance(place, Hook):
            return isinstance(loader, cst.Call)
        made = [origin.call for origin in self.values.origins(loader) if origin.call is not None]
        names = self.tree.within(loader, cst.Name)
        bound = [binding.site for name in names for binding in self.names.bindings.lookup(name)]
        return any(self.tree.contains(place, site) for site in [*made, *bound])
