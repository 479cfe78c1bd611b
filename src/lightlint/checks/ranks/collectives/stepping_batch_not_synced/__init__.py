from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check
from lightlint.checks.ranks.collectives.stepping_batch_not_synced.turns import Turns
from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.tree import Loop
from lightlint.facts.ranks.rank_tests import COLLECTIVES

# calls that may bring the gradients, or the weights, of the ranks together after all
_SYNCS = re.compile(r"sync|all_?reduce|average|broadcast", re.IGNORECASE)
_STATE = re.compile(r"param|grad|weight|model|^p$", re.IGNORECASE)
_HOLDING = {"no_sync", "no_backward_sync"}


class SteppingBatchNotSynced(Check):
    def visit_With(self, block: cst.With) -> None:
        loops = self.tree.loops(block)
        for item in block.items if loops else ():
            found = self._switch(item.item, loops[0])
            if found is None:
                continue
            switch, model = found
            if not model or not self._trains(block, model):
                continue
            steps = self._unsynced_steps(block, loops[0], self._tests(switch, block))
            if steps and not self._runs_again(block, loops[0], model) and not self._syncs_by_hand(loops[0]):
                self.report(
                    switch,
                    f"`no_sync` is on in just the turns in which `{self.code.text_of(steps[0].func)}` runs: "
                    "the gradients of that batch are not exchanged",
                )

    def _switch(self, context: cst.BaseExpression, loop: Loop) -> tuple[cst.BaseExpression, str] | None:
        """The `no_sync` that a context is in some turns, with the model it speaks of."""
        if isinstance(context, cst.Call) and isinstance(context.func, cst.Name) and not context.args:
            context = context.func  # `context = model.no_sync if ... else nullcontext`, then `with context():`
        if isinstance(context, cst.Name) and self._is_bound_again(context, loop):
            return None
        for source in self.facts.reaching.sources(context):
            func = source.func if isinstance(source, cst.Call) else source
            if isinstance(func, cst.Attribute) and func.attr.value in _HOLDING:
                return source, self._model(source, func)
        return None

    def _is_bound_again(self, name: cst.Name, loop: Loop) -> bool:
        """Whether a context that is chosen in a turn may be replaced by another in the same turn."""
        found = self.facts.reaching.bindings(name)
        held = [each for each in found if each.kind is Kind.ASSIGN and each.value and self._holds_switch(each.value)]
        flow = self.facts.flow(self.tree.owner(name))
        return any(
            flow.reaches_in_same_iteration(loop, one.site, [other.site for other in found if other is not one])
            for one in held
        )

    def _holds_switch(self, value: cst.BaseExpression) -> bool:
        return any(each.attr.value in _HOLDING for each in self.tree.within(value, cst.Attribute))

    def _model(self, source: cst.BaseExpression, func: cst.Attribute) -> str:
        """The model of `model.no_sync()`, `accelerator.no_sync(model)` or `fabric.no_backward_sync(model)`."""
        if isinstance(source, cst.Call) and source.args:
            return self.names.key(source.args[0].value)
        return self.names.key(func.value) if func.attr.value == "no_sync" else ""

    def _tests(self, switch: cst.BaseExpression, block: cst.With) -> list[tuple[cst.BaseExpression, bool]]:
        """The tests that let `no_sync` be on: around it, around its block, and `enabled` of Fabric's."""
        enabled = self.names.argument(switch, "enabled", 1) if isinstance(switch, cst.Call) else None
        told = [(enabled.value, True)] if enabled is not None else []
        return [*self.facts.conditions(switch), *self.facts.conditions(block), *told]

    def _trains(self, block: cst.With, model: str) -> bool:
        """Whether forward and backward pass surely run in a block."""
        if not self.facts.steps.runs(block.body, self.loops.is_backward):
            return False
        calls = self.tree.own(block.body, cst.Call)
        return any(self._runs(each, model) or self._is_given(each, model) for each in calls)

    def _runs(self, call: cst.Call, model: str) -> bool:
        if self.names.key(call.func) == model:
            return True
        return model.startswith("self.") and self.facts.steps.leads(
            call, lambda each: self.names.key(each.func) == model
        )

    def _is_given(self, call: cst.Call, model: str) -> bool:
        return any(self.names.key(arg.value) == model for arg in call.args)

    def _unsynced_steps(
        self, block: cst.With, loop: Loop, tests: list[tuple[cst.BaseExpression, bool]]
    ) -> list[cst.Call]:
        """The optimizer steps behind a block that come only in turns in which its `no_sync` is on."""
        flow = self.facts.flow(self.tree.owner(block))
        steps = [
            each
            for each in self.tree.own(loop.body, cst.Call)
            if self.facts.accumulation.is_step(each) and self.tree.loops(each)[0] is loop
        ]
        behind = [each for each in steps if flow.reaches_in_same_iteration(loop, block, [each])]
        turns = Turns(self.facts, loop)
        return [each for each in behind if turns.always_together(self.facts.conditions(each), tests)]

    def _runs_again(self, block: cst.With, loop: Loop, model: str) -> bool:
        """Whether the model may run outside of a block in the same turn: a pass that exchanges takes all there is along."""
        outside = [
            each
            for each in self.tree.own(loop.body, cst.Call)
            if (self._runs(each, model) or self._is_given(each, model)) and not self.tree.contains(block, each)
        ]
        flow = self.facts.flow(self.tree.owner(block))
        before = any(flow.reaches_in_same_iteration(loop, each, [block.items[0].item]) for each in outside)
        return before or flow.reaches_in_same_iteration(loop, block, outside)

    def _syncs_by_hand(self, loop: Loop) -> bool:
        calls = self.tree.own(loop.body, cst.Call)
        return any(map(self._may_sync, calls)) or self.facts.forwards.syncs_by_hand(loop.body)

    def _may_sync(self, call: cst.Call) -> bool:
        """Whether a call may bring the ranks together: a collective for what it is given, any other by its name."""
        if self.names.call(call) in COLLECTIVES:
            return any(_STATE.search(name.value) for arg in call.args for name in self.tree.within(arg, cst.Name))
        method = self.names.method(call)
        is_wait = (self.names.call(call) or "").startswith("torch.cuda.")
        return method not in _HOLDING and not is_wait and bool(_SYNCS.search(method))
