from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.code.spread import Spread, counts_in
from lightlint.facts.lightning.hooks import TRAINING_STEP
from lightlint.facts.linked import Linked
from lightlint.facts.objects.classes import MODULE
from lightlint.facts.ranks.world import Ranks
from lightlint.facts.values.sources import sources

_EXCHANGES = {"broadcast", "scatter", "gather", "send", "recv", "isend", "irecv", "all_gather", "all_reduce", "reduce"}
_EXCHANGES |= {"broadcast_object_list", "all_gather_object", "scatter_object_list", "all_gather_into_tensor"}
_SAME_VALUES = {"to", "cuda", "cpu", "contiguous", "clone", "requires_grad_"}
_NO_DATA = {"torch.device", "time.time", "time.perf_counter", "torch.cuda.Event"}


class RankDependentForward(Check):
    of_several_processes = True

    def visit_If(self, node: cst.If) -> None:
        function = self.tree.function(node)
        if function is None or not self.guards.is_test(node.test) or not self._trains(function):
            return
        for name, start, value in self._bound_in(node):
            same = self._is_same_on_both(node, name, value) or self._is_same_in_turns(function, name, value)
            if not self._is_plain(name, value) and not same:
                uses = Spread(self.tree, function, self.facts.flow(function)).uses(name, start)
                if any(self._is_loss(use, function) for use in uses):
                    self.report(node.test, f"`{name}` is not the same on all ranks and reaches the loss")
                    return

    def visit_IfExp(self, node: cst.IfExp) -> None:
        function = self.tree.function(node)
        if function is None or not self.guards.is_test(node.test) or not self._trains(function):
            return
        assign = self.tree.statement(node)
        if not isinstance(assign, cst.Assign) or assign.value is not node or self._is_no_data(node.body):
            return
        for target in assign.targets:
            if isinstance(target.target, cst.Name):
                name = target.target.value
                uses = Spread(self.tree, function, self.facts.flow(function)).uses(name, target.target)
                if any(self._is_loss(use, function) for use in uses):
                    self.report(node.test, f"`{name}` is not the same on all ranks and reaches the loss")

    def _trains(self, function: cst.FunctionDef) -> bool:
        """Whether a function computes the loss on every rank, and exchanges no tensors that could make it equal again."""
        named = {each.attr.value for each in self.tree.own(function, cst.Attribute)}
        if named & _EXCHANGES or any(self.names.method(c) in _EXCHANGES for c in self.tree.own(function, cst.Call)):
            return False
        if self._is_forward(function):
            return self.facts.world.lightning is not Ranks.ONE
        backward = self.loops.is_backward_in(function.body)
        return backward and self.facts.world.raw is Ranks.MANY and self.facts.processes.per_rank(function.body)

    def _is_forward(self, function: cst.FunctionDef) -> bool:
        """Whether it is `training_step`, the `forward` of a LightningModule, or a helper whose result a step returns."""
        hook = self.hooks.of(function)
        if hook is not None and hook.name in {TRAINING_STEP, "forward"}:
            return self.classes.is_a(self.tree.class_of(function), MODULE)
        returned = [self.tree.parent(call) for call in self.hooks.calls_of.get(function, ())]
        steps = [self.tree.function(each) for each in returned if isinstance(each, cst.Return)]
        return any(step is not None and self._is_forward(step) for step in steps if step is not function)

    def _bound_in(self, node: cst.If) -> list[tuple[str, cst.CSTNode, cst.BaseExpression | None]]:
        """What the two branches bind or change in place: the name, where, and to what."""
        found: list[tuple[str, cst.CSTNode, cst.BaseExpression | None]] = []
        branches = [node.body, *([node.orelse] if node.orelse is not None else [])]
        for branch in branches:
            for assign in self.tree.own(branch, cst.Assign, cst.AugAssign):
                targets = (
                    [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else [assign.target]
                )
                for target in targets:
                    held = target.value if isinstance(target, cst.Subscript) else target
                    if isinstance(target, cst.Subscript) and not self._is_read(target):
                        continue
                    if isinstance(held, cst.Name):
                        plain = isinstance(assign, cst.Assign) and held is target
                        found.append((held.value, held, assign.value if plain else None))
        return found

    def _is_read(self, stored: cst.Subscript) -> bool:
        """Whether what is stored under a text may go into a loss of this function: the same place is read in it, too."""
        key = self.names.constant(stored.slice[0].slice.value) if isinstance(stored.slice[0].slice, cst.Index) else None
        if not isinstance(key, str):
            return True
        text = self.code.text_of(stored)
        places = self.tree.own(self.tree.owner(stored), cst.Subscript)
        loads = (each for each in places if not isinstance(self.tree.parent(each), cst.AssignTarget))
        return any(self.code.text_of(each) == text for each in loads)

    def _is_plain(self, name: str, value: cst.BaseExpression | None) -> bool:
        """Whether a name gets what is no data, or the values that it had."""
        if value is None:
            return False
        match value:
            case cst.Call(func=cst.Attribute(value=cst.Name(value=receiver), attr=attr)):
                if receiver == name and attr.value in _SAME_VALUES:
                    return True
        return self._is_no_data(value)

    def _is_no_data(self, value: cst.BaseExpression) -> bool:
        """Whether a value is text, a switch or a time, whatever way it takes."""
        found = list(sources(self.facts, value))
        return bool(found) and all(each is not None and _is_no_data(home, each) for home, each in found)

    def _is_same_on_both(self, node: cst.If, name: str, value: cst.BaseExpression | None) -> bool:
        """Whether both branches give a name the same expression: only what is around it differs."""
        if value is None or node.orelse is None:
            return False
        both = [each for other, _, each in self._bound_in(node) if other == name]
        spelled = {self.code.text_of(each) if each is not None else "" for each in both}
        return len(both) > 1 and len(spelled) == 1

    def _is_same_in_turns(self, function: cst.FunctionDef, name: str, value: cst.BaseExpression | None) -> bool:
        """Whether tests of several kinds give a name the same expression: first one rank makes it, then the others do."""
        tests = [each for each in self.tree.own(function, cst.If) if self.guards.is_test(each.test)]
        given = [
            (self.code.text_of(each.test), self._shown(bound) if bound is not None else "")
            for each in tests
            for other, _, bound in self._bound_in(each)
            if other == name
        ]
        return value is not None and len({test for test, _ in given}) > 1 and len({text for _, text in given}) == 1

    def _shown(self, value: cst.BaseExpression) -> str:
        """How an expression is written; of a call with several settings what is called, for they may be equal."""
        single = list(sources(self.facts, value))
        home, only = single[0] if len(single) == 1 else (self.facts, value)
        value = only if only is not None and home is self.facts else value
        if isinstance(value, cst.Call) and any(
            isinstance(arg.value, cst.Attribute | cst.Subscript) for arg in value.args
        ):
            return self.code.text_of(value.func)
        return self.code.text_of(value)

    def _is_loss(self, use: cst.Name, function: cst.FunctionDef) -> bool:
        """Whether a use is in what the step returns as its loss, or in a backward pass."""
        for above in self.tree.ancestors(use):
            if isinstance(above, cst.Call) and self.loops.is_backward(above):
                return True
            if isinstance(above, cst.Return):
                return self._is_forward(function) and above.value is not None and counts_in(self.tree, above.value, use)
            if isinstance(above, cst.BaseStatement):
                return False
        return False


def _is_no_data(facts: Linked, value: cst.BaseExpression) -> bool:
    text = isinstance(value, (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString))
    return text or dotted_name(value) in {"True", "False", "None"} or facts.names.call(value) in _NO_DATA
