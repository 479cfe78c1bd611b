from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import Kind

_ONCE = {"builtins.enumerate", "builtins.iter", "builtins.zip"}
_LOADER = re.compile(r"(?:loader|dataset|_dl|^dl)s?$", re.IGNORECASE)
_RESETTING = re.compile(r"dali|prefetch|infinite|endless|cycle|forever", re.IGNORECASE)


class IteratorMadeBeforeEpochs(Check):
    def visit_For(self, loop: cst.For) -> None:
        name = self._iterated(loop.iter)
        around = self.tree.loops(loop)
        if name is None or not around:
            return
        bound = self.names.bindings.lookup(name)
        made = bound[0] if len(bound) == 1 and bound[0].kind is Kind.ASSIGN and not bound[0].path else None
        if made is None or made.value is None or made.scope is not self.tree.owner(loop):
            return
        if not self._is_one_shot(made.value) or self._leaves_early(loop):
            return
        outside = [each for each in around if not self.tree.contains(each, made.site)]
        flow = self.facts.flow(self.tree.owner(loop))
        if any(flow.reaches_in_later_iteration(each, loop, [loop.iter]) for each in outside):
            self.report(
                loop.iter,
                f"`{name.value}` can be gone through once: the loop around this one finds it empty the second time",
            )

    def _iterated(self, iterated: cst.BaseExpression) -> cst.Name | None:
        """The name behind `enumerate(batches)` and `tqdm(batches)`."""
        while isinstance(iterated, cst.Call) and iterated.args and self._hands_on(iterated):
            iterated = iterated.args[0].value
        return iterated if isinstance(iterated, cst.Name) else None

    def _hands_on(self, call: cst.Call) -> bool:
        return self.names.method(call) == "tqdm" or self.names.of(call.func) == "builtins.enumerate"

    def _is_one_shot(self, value: cst.BaseExpression) -> bool:
        """Whether a value is an iterator over loaders, which does not start again, or a bar over one."""
        if not isinstance(value, cst.Call) or not value.args:
            return False
        if self.names.method(value) == "tqdm":
            return self._is_one_shot(value.args[0].value)
        lazy = self.names.of(value.func) in _ONCE
        return lazy and all(self._is_loader(arg.value) for arg in value.args if arg.keyword is None)

    def _is_loader(self, value: cst.BaseExpression) -> bool:
        if self.values.is_loader(value):
            return True
        if isinstance(value, cst.Call):
            return bool(value.args) and self._hands_on(value) and self._is_loader(value.args[0].value)
        made = self.facts.reaching.sources(value) if isinstance(value, cst.Name) else []
        words = [self.names.key(value), *(self.names.key(each.func) for each in made if isinstance(each, cst.Call))]
        named = bool(_LOADER.search(words[0]))
        return named and not any(_RESETTING.search(word) for word in words)

    def _leaves_early(self, loop: cst.For) -> bool:
        """Whether a loop may stop before the last batch, and leave the rest to the next time."""
        inside = self.tree.within(loop.body, cst.Break, cst.Return)
        return bool(inside) or any(
            self.names.of(each.func) == "builtins.next" for each in self.tree.within(loop.body, cst.Call)
        )
