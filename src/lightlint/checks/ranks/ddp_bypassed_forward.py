from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Collective, Forward
from lightlint.facts.bindings import Kind
from lightlint.facts.processes import DATA_PARALLEL
from lightlint.facts.updates import body_of
from lightlint.facts.world import Ranks
from lightlint.finding import Tier
from lightlint.values.training import Graph, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_NO_GRAPH = {"detach", "item", "tolist", "numpy", "argmax", "data", "generate"}
_BY_HAND = re.compile(
    r"(?:average|sync|reduce|allreduce|all_reduce)\w*_?grad|^register_(?:hook|comm_hook)|post_accumulate", re.I
)
_DEPTH = 3

Owner = cst.FunctionDef | cst.Module


class DdpBypassedForward(Check):
    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._judge(node)

    def visit_Module(self, node: cst.Module) -> None:
        self._judge(node)

    def _judge(self, owner: Owner) -> None:
        body = body_of(owner)
        backwards = self.facts.steps.runs(body, self.loops.is_backward)
        if not backwards:
            return
        bypassed = [
            found
            for call in self.tree.own(body, cst.Call)
            for found in self._bypassed(call)
            if not self.facts.gradients.may_be_off(call)
        ]
        trained = [found for found in bypassed if self.facts.forwards.is_trained(owner, found[1], backwards)]
        trained = [found for found in trained if not self.facts.forwards.runs_wrapped(body, found[3])]
        if trained and self.facts.forwards.runs_wrapped(body):  # another model, for which this one may only judge
            trained = [found for found in trained if self._steps_it(owner, found[1], found[3], backwards)]
        if not trained or self.facts.forwards.syncs_by_hand(body) or self._steps_others(owner):
            return
        at, _, model, _ = trained[0]
        self.report(
            at,
            f"`{model}` runs forward past DDP: no rank gets the gradients of the others",
            tier=None if self._is_sure(at) else Tier.WARNING,
        )

    def _bypassed(self, call: cst.Call) -> list[tuple[cst.CSTNode, cst.Call, str, cst.BaseExpression]]:
        """The forward pass past DDP that a call runs, itself or in a helper that is given the module: where it shows,
        the call, how the module is spelled, and the module."""
        inner = self.facts.forwards.inner_of(call) or self._presumed(call)
        if inner is not None:
            return [(call, call, self.code.text_of(call.func), inner)]
        callee = self.facts.steps.callee(call)
        if callee is None:
            return []
        for arg in call.args:
            if self.facts.data_parallel.is_inner(arg.value) and self.facts.forwards.runs_given(callee, call, arg.value):
                return [(arg.value, call, self.code.text_of(arg.value), arg.value)]
        if self.facts.steps.calls_of.get(callee, ())[:1] != (call,):
            return []  # told where it is called first
        inside = [(each, self.facts.forwards.inner_of(each)) for each in self.tree.own(callee.body, cst.Call)]
        return [
            (each, call, self.code.text_of(each.func), inner)
            for each, inner in inside
            if inner is not None
            and not self.facts.gradients.may_be_off(each)
            and self.facts.forwards.is_returned(callee, each)
        ]

    def _presumed(self, call: cst.Call) -> cst.BaseExpression | None:
        """`model.module` of `model.module(x)`, where the model comes from elsewhere in a project that trains with DDP."""
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value == "forward":
            func = func.value
        if not isinstance(func, cst.Attribute) or func.attr.value != "module" or self.facts.world.raw is Ranks.ONE:
            return None
        called = self.facts.world.called
        model = func.value
        if DATA_PARALLEL not in called or "torch.nn.DataParallel" in called:
            return None
        tests = [test for test, _ in self.facts.conditions(call)]
        if any(name.value == "DataParallel" for test in tests for name in self.tree.within(test, cst.Name)):
            return None
        node = self.classes.self_class(model.value) if isinstance(model, cst.Attribute) else None
        if node is not None and isinstance(model, cst.Attribute):
            held = self.classes.attribute_values(node, model.attr.value)
            return func if len(held) == 1 and self._is_given(held[0]) else None
        return func if self._is_given(model) else None

    def _is_given(self, value: cst.CSTNode) -> bool:
        """Whether a value is a parameter that nothing in this file gives."""
        found = self.facts.reaching.bindings(value) if isinstance(value, cst.Name) else []
        if len(found) != 1 or found[0].kind is not Kind.PARAMETER or not isinstance(found[0].scope, cst.FunctionDef):
            return False
        function = found[0].scope
        called = self.facts.steps.calls_of.get(function) or self.hooks.constructions.get(function)
        return not called and self.classes.self_class(value) is None

    def _is_sure(self, at: cst.CSTNode) -> bool:
        call = at if isinstance(at, cst.Call) else None
        return call is None or self.facts.forwards.inner_of(call) is not None

    def _steps_it(self, owner: Owner, call: cst.Call, inner: cst.BaseExpression, backwards: list[cst.Call]) -> bool:
        """Whether an optimizer of a module surely uses the gradients that a forward pass through it gets."""
        over = [each for each in backwards if self.facts.forwards.is_trained(owner, call, [each])]
        updates, flow = self.facts.updates, self.facts.flow(owner)
        return any(
            updates.holds(update.optimizer, lambda module: self.facts.forwards.are_one(module, inner))
            and flow.reaches(each, [update.call], avoiding=updates.clears_of(owner, update.optimizer))
            for update in updates.updates(owner)
            for each in over
        )

    def _steps_others(self, owner: Owner) -> bool:
        """Whether the optimizers in sight surely hold no parameter of a DDP model: the gradient of an input is wanted."""
        known = []
        for update in self.facts.updates.updates(owner):
            for origin in self.values.origins(update.optimizer):
                params = self.names.argument(origin.call, "params", 0) if origin.call is not None else None
                known.append(params is None or self._holds_model(params.value))
        return bool(known) and not any(known)

    def _holds_model(self, params: cst.BaseExpression) -> bool:
        """Whether an optimizer may be made of a module's parameters: not of a list of single tensors."""
        return not isinstance(params, cst.List) or bool(self.tree.within(params, cst.Call))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses whose whole graph was recorded around the DDP wrapper, where nothing exchanges gradients by hand."""
        for path in entry.paths:
            by_hand = any(
                t.gradient_of for event in path.of(Collective) for value in event.args for t in tensors_in(value)
            )
            if by_hand:
                continue
            around: dict[Graph, Forward] = {}
            for event in path.events:
                if isinstance(event, Forward):
                    around.update({graph: event for graph in event.graph if graph.bypassed is not None})
                elif isinstance(event, Backward) and event.loss is not None and not event.loss.escaped:
                    recorded = [graph for graph in event.loss.graph if not graph.guess]
                    forwards = [around[graph] for graph in recorded if graph in around]
                    if forwards and len(forwards) == len(recorded) and not forwards[0].module.escaped:
                        yield Fault.at(
                            forwards[0], "this runs forward past DDP: no rank gets the gradients of the others"
                        )
