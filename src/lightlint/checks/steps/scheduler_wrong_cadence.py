from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import Kind, dotted_name
from lightlint.facts.loops import LoopKind

_ROOM = "torch.optim.lr_scheduler."
_LENGTHS = {
    "OneCycleLR": (("steps_per_epoch", 4), ("total_steps", 2)),
    "CosineAnnealingLR": (("T_max", 1),),
    "LinearLR": (("total_iters", 3),),
    "PolynomialLR": (("total_iters", 1),),
}


class SchedulerWrongCadence(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if not self.facts.updates.is_scheduler_step(call) or call.args or not isinstance(call.func, cst.Attribute):
            return
        origin = self.values.constructor(call.func.value)
        name = origin.name.removeprefix(_ROOM) if origin is not None else ""
        loops = self.tree.loops(call)
        if origin is None or origin.call is None or name not in _LENGTHS or not loops:
            return
        length = next(
            (arg.value for kw, at in _LENGTHS[name] if (arg := self.names.argument(origin.call, kw, at))), None
        )
        if length is None:
            return
        kind = self.loops.kind(loops[0])
        if kind is LoopKind.EPOCH and self._counts_batches(length) and self._draws_batches(loops[0]):
            self.report(
                call, f"steps `{name}` once an epoch, although its length counts batches: it hardly leaves its start"
            )
        elif (
            kind is LoopKind.BATCH and name != "OneCycleLR" and len(loops) > 1 and self._counts_epochs(length, loops[1])
        ):
            self.report(
                call,
                f"steps `{name}` once a batch, although its length counts epochs: it is through after a few batches",
            )

    def _draws_batches(self, loop: cst.CSTNode) -> bool:
        """Whether a loop over batches stands in the body of a loop."""
        inner = self.tree.within(loop, cst.For)
        return any(each is not loop and self.loops.kind(each) is LoopKind.BATCH for each in inner) or bool(
            self.facts.steps.runs(getattr(loop, "body", loop), self.loops.is_backward)
        )

    def _counts_batches(self, length: cst.BaseExpression) -> bool:
        """Whether a length holds `len(loader)`."""
        return any(
            self.names.call(each) == "builtins.len" and bool(each.args) and self._is_loader(each.args[0].value)
            for source in self.facts.reaching.sources(length)
            for part in self._parts(source)
            for each in self.tree.within(part, cst.Call)
        )

    def _parts(self, source: cst.BaseExpression) -> list[cst.BaseExpression]:
        """An expression, and what the names in it are bound to once."""
        found = [source]
        for name in self.tree.within(source, cst.Name):
            bound = self.names.bindings.lookup(name)
            if len(bound) == 1 and bound[0].kind is Kind.ASSIGN and bound[0].value is not None and not bound[0].path:
                found.append(bound[0].value)
        return found

    def _is_loader(self, expression: cst.BaseExpression) -> bool:
        return self.values.is_loader(expression) or "loader" in dotted_name(expression).rpartition(".")[2].lower()

    def _counts_epochs(self, length: cst.BaseExpression, loop: cst.CSTNode) -> bool:
        """Whether a length is what the epoch loop counts to, and batches are many times as many."""
        if not isinstance(loop, cst.For) or self.names.call(loop.iter) != "builtins.range":
            return False
        assert isinstance(loop.iter, cst.Call)
        bounds = [arg.value for arg in loop.iter.args[:2]]
        key = self.names.key(length)
        same = self.tree.owner(length) is self.tree.owner(loop) or "." in key
        return bool(key) and same and key == self.names.key(bounds[-1] if bounds else None)
