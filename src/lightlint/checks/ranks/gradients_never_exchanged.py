from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.updates import body_of


class GradientsNeverExchanged(Check):
    def visit_With(self, block: cst.With) -> None:
        models = [model for item in block.items if (model := self._model(item.item)) is not None]
        for model in models:
            if not self._runs_in(block, self.names.key(model)) or self._is_chosen(block):
                continue
            owner = self.tree.owner(block)
            by_hand = self.facts.forwards.syncs_by_hand(body_of(owner))
            if by_hand or self._runs_outside(owner, self.names.key(model)) or not self._steps(block):
                continue
            self.report(
                block.items[0],
                f"`{self.code.text_of(model)}` never runs outside of `no_sync`: no step exchanges gradients",
            )

    def _model(self, context: cst.BaseExpression) -> cst.BaseExpression | None:
        """The DDP model of `model.no_sync()`."""
        func = context.func if isinstance(context, cst.Call) and self.names.method(context) == "no_sync" else None
        wrapped = isinstance(func, cst.Attribute) and self.facts.data_parallel.is_wrapped(func.value)
        return func.value if wrapped and isinstance(func, cst.Attribute) and self.names.key(func.value) else None

    def _forwards(self, scope: cst.CSTNode, model: str) -> list[cst.Call]:
        """The calls that run a model, or hand it to other code."""
        return [
            call
            for call in self.tree.within(scope, cst.Call)
            if self.names.key(call.func) == model or any(self.names.key(arg.value) == model for arg in call.args)
        ]

    def _runs_in(self, block: cst.With, model: str) -> bool:
        return any(self.names.key(call.func) == model for call in self._forwards(block.body, model))

    def _runs_outside(self, owner: cst.CSTNode, model: str) -> bool:
        """Whether a model may run with autograd where gradients are exchanged, in this function or behind an attribute."""
        scope = self.tree.module if "." in model else owner
        return any(not self._is_held_back(call, model) for call in self._forwards(scope, model))

    def _is_held_back(self, call: cst.Call, model: str) -> bool:
        off = self.facts.gradients.may_be_off(call) or (self.names.call(call) or "").startswith("builtins.")
        return off or any(
            isinstance(above, cst.With)
            and any(self._model(item.item) is not None and self._is_of(item.item, model) for item in above.items)
            for above in self.tree.ancestors(call)
        )

    def _is_of(self, context: cst.BaseExpression, model: str) -> bool:
        held = self._model(context)
        return held is not None and self.names.key(held) == model

    def _is_chosen(self, block: cst.With) -> bool:
        """Whether a test around a block may be about a single process, or leave some steps to other code."""
        loops = self.tree.loops(block)
        inside = loops[0].body if loops else self.tree.owner(block)
        return any(self.tree.contains(inside, test) for test, _ in self.facts.conditions(block))

    def _steps(self, block: cst.With) -> bool:
        """Whether an optimizer surely steps with those gradients in the same function."""
        owner = self.tree.owner(block)
        backwards = self.facts.steps.runs(body_of(owner), self.loops.is_backward)
        updates = [each.call for each in self.facts.updates.updates(owner)]
        return any(self.facts.flow(owner).reaches(each, updates) for each in backwards)
