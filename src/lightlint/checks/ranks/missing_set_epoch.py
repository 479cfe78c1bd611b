from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.loading import Driver
from lightlint.fixes.edits import insert_before

_SAMPLERS = {"torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler"}


class MissingSetEpoch(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) not in _SAMPLERS or not self._shuffles(call) or self._is_set():
            return
        for loader, driver in self.facts.loading.training.items():
            if driver is Driver.LOOP and self._sampler(loader) is call:
                place = next(self._epochs(loader), None)
                if place is not None:
                    self.report(
                        call,
                        "`set_epoch` is never called: every epoch draws the same order",
                        repair=self._repair(*place),
                    )
                return

    def _shuffles(self, call: cst.Call) -> bool:
        """Whether a sampler surely shuffles: by default, or as every call of the function around it, or one, asks."""
        given = self.names.argument(call, "shuffle", 3)
        if given is None:
            return not self.names.has_star(call)
        if self.names.constant(given.value) is True:
            return True
        function = self.tree.function(call)
        if not isinstance(given.value, cst.Name) or function is None:
            return False
        calls = self.hooks.calls_of.get(function, ())
        values = [self.values.given(function, each, given.value.value) for each in calls]
        return any(self.names.constant(each) is True for each in values if each is not None)

    def _is_set(self) -> bool:
        return any(each.attr.value == "set_epoch" for each in self.tree.all(cst.Attribute))

    def _sampler(self, loader: cst.Call) -> cst.Call | None:
        given = self.names.argument(loader, "sampler", 3)
        origins = {each.call for each in self.values.origins(given.value)} if given is not None else set()
        return origins.pop() if len(origins) == 1 else None

    def _epochs(self, loader: cst.Call) -> Iterator[tuple[cst.For, cst.BaseExpression]]:
        """The epoch loops in which a loader is drawn to its end, each with what it is called there."""
        for loop in self.tree.all(cst.For):
            drawn = self.values.iterated(loop.iter)
            if not any(origin.call is loader for origin in self.values.origins(drawn)):
                continue
            if isinstance(drawn, cst.BaseExpression):
                yield from self._around(loop, drawn, loader)
            function = self.tree.function(loop)
            if function is None or not isinstance(drawn, cst.Name):
                continue
            for call in self.hooks.calls_of.get(function, ()):
                given = self.values.given(function, call, drawn.value)
                if given is not None and any(origin.call is loader for origin in self.values.origins(given)):
                    yield from self._around(call, given, loader)

    def _around(
        self, node: cst.CSTNode, drawn: cst.BaseExpression, loader: cst.Call
    ) -> Iterator[tuple[cst.For, cst.BaseExpression]]:
        loops = self.tree.loops(node)
        if loops and isinstance(loops[0], cst.For) and not self.tree.contains(loops[0], loader):
            yield loops[0], drawn

    def _repair(self, loop: cst.For, drawn: cst.BaseExpression) -> Repair | None:
        key = self.names.key(drawn)
        first = loop.body.body[0] if loop.body.body else None
        counted = self.names.call(loop.iter) == "builtins.range"
        if not key or not counted or not isinstance(loop.target, cst.Name) or not isinstance(first, cst.BaseStatement):
            return None
        draft = insert_before(self.code, first, f"{key}.sampler.set_epoch({loop.target.value})")
        return Repair("tell the sampler the epoch", draft)
