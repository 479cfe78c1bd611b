from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, WeightSet
from lightlint.explore.queries import in_sight
from lightlint.facts.aliases import rebinding
from lightlint.facts.bindings import Kind
from lightlint.facts.hooks import TRAINING_STEP, Hook, Owner
from lightlint.facts.loops import LoopKind

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_ITERATORS = {"parameters": (), "named_parameters": (1,), "modules": (), "children": ()}
_PARAMETERS = {"weight", "bias"}


class ParamDataMutationInStep(Check):
    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._check(node, node.target, node.value)

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self._check(node, target.target, node.value)

    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value.endswith("_") and func.attr.value != "requires_grad_":
            self._check(call, func.value, *(arg.value for arg in call.args))

    def _check(self, node: cst.CSTNode, target: cst.BaseExpression, *sources: cst.BaseExpression) -> None:
        while isinstance(target, cst.Subscript):
            target = target.value
        if not isinstance(target, cst.Attribute) or target.attr.value != "data":
            return
        module = self._module(target.value)
        if not module or any(self._reads_another(each, self.names.key(target.value)) for each in sources):
            return
        if any(self._between_passes(place, module) for place in self._places(node)):
            name = self.code.text_of(target)
            self.report(node, f"`{name}` changes between forward and backward pass, behind autograd's back")

    def _module(self, parameter: cst.BaseExpression) -> str:
        """Key of the module that a parameter belongs to, empty if the expression is not surely a parameter."""
        if isinstance(parameter, cst.Name):
            found = self.names.bindings.lookup(parameter)
            binding = found[0] if len(found) == 1 else None
            if binding is None or binding.value is None:
                return ""
            if binding.kind is Kind.LOOP and isinstance(binding.value, cst.Call):
                return self._iterated(binding.value, binding.path)
            plain = binding.kind is Kind.ASSIGN and not binding.path
            return self._module(binding.value) if plain and isinstance(binding.value, cst.Attribute) else ""
        if not isinstance(parameter, cst.Attribute):
            return ""
        origin = self.values.constructor(parameter)
        if origin is not None and origin.name == "torch.nn.Parameter":
            return self.names.key(parameter.value)
        if parameter.attr.value not in _PARAMETERS:
            return ""
        owner = parameter.value
        if isinstance(owner, cst.Name) and not self.values.is_module(owner):
            return self._module(owner) if self._is_submodule(owner) else ""
        return self.names.key(owner) if self.values.is_module(owner) else ""

    def _is_submodule(self, name: cst.Name) -> bool:
        """Whether a name runs over `model.modules()`."""
        found = self.names.bindings.lookup(name)
        value = found[0].value if len(found) == 1 and found[0].kind is Kind.LOOP else None
        return self.names.method(value) in {"modules", "children"}

    def _iterated(self, call: cst.Call, path: tuple[int, ...]) -> str:
        method = self.names.method(call)
        if not isinstance(call.func, cst.Attribute) or call.args or _ITERATORS.get(method) != path:
            return ""
        return self.names.key(call.func.value)

    def _reads_another(self, source: cst.BaseExpression, key: str) -> bool:
        """Whether a value comes from other weights: an average of two networks, a copy of a target network."""
        for attribute in self.tree.within(source, cst.Attribute):
            own = key in {self.names.key(attribute), self.names.key(attribute.value)}
            if attribute.attr.value in {"data", *_PARAMETERS} and not own:
                return True
        calls = self.tree.within(source, cst.Call)
        return any(self.names.method(call) in {*_ITERATORS, "state_dict", "get", "pop"} for call in calls)

    def _places(self, node: cst.CSTNode, depth: int = 0) -> Iterator[cst.CSTNode]:
        """The node, and the calls by which control gets to it, up to the function that runs the backward pass."""
        yield node
        function = self.tree.function(node)
        if function is None or depth > 4 or self.facts.steps.runs(function.body, self._ends_pass):
            return
        for call in self.facts.steps.calls_of.get(function, ()):
            yield from self._places(call, depth + 1)

    def _between_passes(self, node: cst.CSTNode, module: str) -> bool:
        """Whether a forward pass of a module comes before a node, and the backward pass of it behind the node."""
        owner = self.tree.owner(node)
        flow, steps = self.facts.flow(owner), self.facts.steps
        backwards = steps.runs(owner, self.loops.is_backward)
        ends = steps.runs(owner, self._ends_pass)
        forwards = [each for each in steps.runs(owner, lambda call: self._runs(call, module)) if each not in ends]
        kinds = [(self.loops.kind(loop), loop) for loop in self.tree.loops(node)]
        batches = [loop for kind, loop in kinds if kind is LoopKind.BATCH]
        if not batches and any(kind is LoopKind.EPOCH for kind, _ in kinds):
            return False
        if batches:
            return any(
                flow.reaches_in_same_iteration(batches[0], forward, [node], avoiding=ends)
                and flow.reaches_in_same_iteration(batches[0], node, backwards)
                for forward in forwards
                if forward is not node
            )
        parts = module.split(".")
        keys = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        anew = [each for key in keys for each in rebinding(self.tree, self.names, owner, key)]
        stops = [*ends, *anew]  # a forward pass of the module that had the name before is none of this one
        seen = any(flow.reaches(forward, [node], avoiding=stops) for forward in forwards if forward is not node)
        return seen and (flow.reaches(node, backwards) or self._is_automatic(node))

    def _ends_pass(self, call: cst.Call) -> bool:
        return self.loops.is_backward(call) or self.names.method(call) == "step"

    def _is_automatic(self, node: cst.CSTNode) -> bool:
        """Whether Lightning runs the backward pass behind a node by itself."""
        around = self.tree.enclosing_class(node)
        in_step = Hook(Owner.MODULE, TRAINING_STEP) in self.hooks.around(node)
        return around is not None and in_step and self.classes.constant(around, "automatic_optimization", True) is True

    def _runs(self, call: cst.Call, module: str) -> bool:
        """Whether a call is a forward pass of a module, of one that holds it, or of one of its parts."""
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value == "forward":
            func = func.value
        key = self.names.key(func)
        if not key:
            return False
        apart = not (key == module or key.startswith(f"{module}.") or module.startswith(f"{key}."))
        if apart or not (key == module or self.values.is_module(func)):
            return False
        return not self.facts.gradients.may_be_off(call)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Weights that are changed while a loss computed with them waits for its backward pass."""
        for path in entry.paths:
            changed: list[WeightSet] = []
            for event in path.events:
                if isinstance(event, WeightSet):
                    changed.append(event)
                elif isinstance(event, Backward):
                    used = set(event.parameters)
                    for each in changed:
                        before = event.graph and all(graph.made < each.time for graph in event.graph)
                        if before and each.parameter in used and in_sight([each.parameter]):
                            yield Fault(
                                each.site, "a weight changes between forward and backward pass, behind autograd's back"
                            )
                    changed = []
