"""Where autograd records, and which values carry a graph: followed from parameters and backward passes, never by spelling."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.graphs.autograd import KEEPING, Graph, is_told_to_keep, joined, sum_terms
from lightlint.facts.graphs.loss_dicts import LossDicts
from lightlint.facts.graphs.switches import is_switched_around, switches
from lightlint.facts.lightning.hooks import TRAINING_STEP, Hook, Owner
from lightlint.facts.steps.steps import Steps
from lightlint.facts.tensors.numbers import Numbers

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_DEPTH = 6
_WITHOUT_GRAD = ("validation_", "test_", "predict_", "on_validation_", "on_test_", "on_predict_")
_FUNCTIONS = re.compile(
    r"torch\.(?:stack|cat|mean|sum|sqrt|square|exp|log|abs|norm|nn\.functional\.(?!one_hot|embedding)\w+)$"
)
_PARAMETRIC = re.compile(
    r"torch\.nn\.(?:Lazy)?(?:Parameter|Linear|Bilinear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|\w+Norm\w*|Transformer\w*|Multihead\w+)$"
)


class Gradients:
    """Gradients of one file."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._known_off: dict[int, bool] = {}
        self._run_off: dict[tuple[int, int], bool] = {}
        self._graphs: dict[tuple[int, int], Graph | None] = {}
        self._keys_of: dict[int, set[str]] = {}
        self._computed: dict[int, bool] = {}

    @cached_property
    def loss_dicts(self) -> LossDicts:
        """Which dicts hold values that carry a graph."""
        return LossDicts(self._facts, self)

    def may_be_off(self, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether autograd may not record at a node: by a context manager, a decorator, a hook, or at some call of it.

        Errs towards yes: what merely looks like `no_grad` counts.
        """
        if depth:
            return self._is_off(node, depth)
        if id(node) not in self._known_off:
            self._known_off[id(node)] = self._is_off(node, depth)
        return self._known_off[id(node)]

    def is_switched(self, node: cst.CSTNode) -> bool:
        """Whether a context manager or a decorator in the function around a node may keep autograd from recording."""
        return is_switched_around(self._tree, self._names, node) or self._is_switched_for_good

    def _is_off(self, node: cst.CSTNode, depth: int) -> bool:
        for above in self._tree.ancestors(node):
            kind = type(above)
            if (
                kind is cst.With
                and isinstance(above, cst.With)
                and any(switches(self._names, each.item) for each in above.items)
            ):
                return True
            if kind is cst.FunctionDef and isinstance(above, cst.FunctionDef):
                key = id(above), depth
                if key not in self._run_off:
                    self._run_off[key] = self._is_run_off(above, depth)
                if self._run_off[key]:
                    return True
        return self._is_switched_for_good

    def _is_run_off(self, function: cst.FunctionDef, depth: int) -> bool:
        """Whether a function may be run with autograd off: by its decorators, by a hook, or by a call of it."""
        if any(switches(self._names, each.decorator) for each in function.decorators):
            return True
        if any(hook.name.startswith(_WITHOUT_GRAD) for hook in self._facts.hooks.reached(function)):
            return True
        calls = self._facts.fact(Steps).calls_of.get(function, ())
        return depth < _DEPTH and any(self.may_be_off(call, depth + 1) for call in calls)

    @cached_property
    def _is_switched_for_good(self) -> bool:
        """Whether the file turns autograd off, or may, by a plain `torch.set_grad_enabled(...)`."""
        calls = (call for call in self._tree.all(cst.Call) if isinstance(self._tree.parent(call), cst.Expr))
        return any(self._names.call(call) == "torch.set_grad_enabled" for call in calls)

    def graphs(self, expression: cst.BaseExpression | None, depth: int = 0) -> list[Graph]:
        """The parts of an expression by which a graph gets into its value; none if that is not sure."""
        match expression:
            case cst.BinaryOperation():
                return [*self.graphs(expression.left, depth), *self.graphs(expression.right, depth)]
            case cst.UnaryOperation(operator=cst.Minus()):
                return self.graphs(expression.expression, depth)
            case cst.Tuple() | cst.List() | cst.Dict():
                return [graph for each in expression.elements for graph in self.graphs(each.value, depth)]
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))) if method in KEEPING:
                return self.graphs(receiver, depth)
            case cst.Name() | cst.Attribute() | cst.Subscript() | cst.Call() if depth < _DEPTH:
                found = self._graph(expression, depth + 1)
                return [found] if found else []
        return []

    def _graph(self, node: cst.BaseExpression, depth: int) -> Graph | None:
        known = (id(node), depth)
        if known not in self._graphs:
            self._graphs[known] = self._find_graph(node, depth)
        return self._graphs[known]

    def _find_graph(self, node: cst.BaseExpression, depth: int) -> Graph | None:
        if self._facts.fact(Numbers).is_number(node):  # a term of a loss may be one
            return None
        if isinstance(node, cst.Subscript) and self._is_written_over(node):
            return None
        if isinstance(node, cst.Call):
            return self._of_call(node, depth)
        backward = self._backward_over(node) if self._names.key(node) else None
        if backward is not None:
            freed = not is_told_to_keep(self._names, backward)
            direct = [self._names.key(each) for each in self.terms(backward)] == [self._names.key(node)]
            return Graph(node, freed, tensor=direct)
        if self._names.key(node) and self._is_returned_loss(node):
            return Graph(node, freed=True, tensor=True)
        if isinstance(node, cst.Subscript):
            return self.loss_dicts.of_item(node, depth)
        found = self._of_name(node, depth) if isinstance(node, cst.Name) else None
        parts = self.loss_dicts.item(node, None, depth) if found is not None and found.held else None
        return replace(found, freed=parts.freed) if found is not None and parts is not None else found

    def _is_written_over(self, item: cst.Subscript) -> bool:
        """Whether items of a dict are set by keys that are not written down: `for key in losses: losses[key] = ...`."""
        held = self._names.key(item.value)
        assigns = self._tree.own(self._tree.owner(item), cst.Assign) if held else ()
        targets = [each.target for assign in assigns for each in assign.targets]
        written = [each for each in targets if isinstance(each, cst.Subscript) and self._names.key(each.value) == held]
        return any(not self._names.key(each) for each in written)

    def _of_name(self, name: cst.Name, depth: int) -> Graph | None:
        """What every assignment that may have given a name its value agrees on."""
        sites = [(each, self._tree.statement(each.site)) for each in self._names.bindings.lookup(name)]
        flow = self._facts.flow(self._tree.owner(name))
        found = []
        for binding, site in sites:
            others = [other for _, other in sites if other is not None and other is not site]
            if site is not None and not flow.reaches(site, [name], avoiding=others):
                continue
            graph = self._of_binding(binding, depth)
            if graph is None:
                return None
            found.append(graph)
        if not found:
            return None
        return joined(name, found)

    def _of_binding(self, binding: Binding, depth: int) -> Graph | None:
        if binding.kind is Kind.LOOP:
            return self.loss_dicts.of_loop(binding, depth)
        if binding.kind is not Kind.ASSIGN or binding.value is None:
            return None
        if binding.path:
            return self._of_part(binding.value, binding.path, depth)
        found = self._first(binding.value, depth)
        return found[0] if found else None

    def _first(self, value: cst.BaseExpression | None, depth: int) -> list[Graph]:
        """The first graph that a value carries, as the value's own."""
        found = self.graphs(value, depth)[:1]
        held = isinstance(value, (cst.Tuple, cst.List, cst.Dict))
        return [Graph(each.node, each.freed, tensor=False, held=True) for each in found] if held else found

    def _of_part(self, value: cst.BaseExpression | None, path: tuple[int, ...], depth: int) -> Graph | None:
        if isinstance(value, cst.Tuple) and len(path) == 1 and path[0] < len(value.elements):
            found = self.graphs(value.elements[path[0]].value, depth)
            return found[0] if found else None
        callee = self._facts.fact(Steps).callee(value) if isinstance(value, cst.Call) else None
        return self._returned(callee, path, depth) if callee is not None else None

    def _returned(self, function: cst.FunctionDef, path: tuple[int, ...], depth: int) -> Graph | None:
        """What every `return` of a function of this file agrees on."""
        found = []
        for each in self._tree.own(function, cst.Return):
            parts = [self._of_part(each.value, path, depth)] if path else self._first(each.value, depth)
            if not parts or parts[0] is None or depth >= _DEPTH:
                return None
            found.append(parts[0])
        return joined(found[0].node, found) if found else None

    def _of_call(self, call: cst.Call, depth: int) -> Graph | None:
        callee = self._facts.fact(Steps).callee(call)
        if callee is not None:
            found = self._returned(callee, (), depth)
            return joined(call, [found]) if found else None
        origin = self._facts.values.constructor(call.func)
        is_loss = origin is not None and origin.name.startswith("torch.nn.") and self._facts.values.is_module(call.func)
        if origin is not None and self._has_parameters(origin.name, origin.call):
            plain = origin.name.startswith("torch.nn.") and not origin.name.startswith(
                ("torch.nn.LSTM", "torch.nn.GRU")
            )
            records = not self.may_be_off(call) and not self.may_be_frozen
            return Graph(call, freed=False, tensor=plain) if records else None
        if is_loss or _FUNCTIONS.match(self._names.of(call.func) or ""):
            carried = [graph for arg in call.args for graph in self.graphs(arg.value, depth)]
            off = self.may_be_off(call)
            return Graph(call, freed=False, tensor=True) if carried and not off else None
        return None

    @cached_property
    def may_be_frozen(self) -> bool:
        """Whether the file takes parameters out of the training, which ones is not followed."""
        words = {name.value for name in self._tree.all(cst.Name)}
        return bool(words & {"requires_grad", "requires_grad_", "freeze"})

    def makes_parameters(self, call: cst.CSTNode | None) -> bool:
        """Whether a call surely makes a module with parameters, or a parameter."""
        name = self._names.call(call)
        return name is not None and isinstance(call, cst.Call) and self._has_parameters(name, call)

    def _has_parameters(self, name: str, call: cst.Call | None) -> bool:
        """Whether instances of a module class surely have parameters."""
        if _PARAMETRIC.match(name):
            return True
        if name in {"torch.nn.Sequential", "torch.nn.DataParallel"} and call is not None:
            inner = self._tree.within(call, cst.Call)
            return any(_PARAMETRIC.match(self._names.call(each) or "") for each in inner)
        node = self._facts.classes.local(name)
        if node is None or not self._facts.classes.name_is_a(name, "torch.nn.Module"):
            return False
        return any(_PARAMETRIC.match(self._names.call(each) or "") for each in self._tree.within(node, cst.Call))

    def terms(self, backward: cst.Call) -> list[cst.BaseExpression]:
        """The terms of what a backward pass starts from: `a` and `b` of `(a + b).backward()` and of `x = a + b`."""
        receiver = backward.func.value if isinstance(backward.func, cst.Attribute) else None
        roots = [each for each in (receiver, *(arg.value for arg in backward.args[:1])) if each is not None]
        return [term for root in roots for term in sum_terms(root)]

    def _backward_over(self, node: cst.BaseExpression) -> cst.Call | None:
        """The backward pass of the same iteration that runs over a value: it starts from it, or from a sum that holds it."""
        key, owner = self._names.key(node), self._tree.owner(node)
        flow, loops = self._facts.flow(owner), self._tree.loops(node)
        sites = (
            [self._tree.statement(each.site) for each in self._names.bindings.lookup(node)]
            if isinstance(node, cst.Name)
            else []
        )
        rebound = [site for site in sites if site is not None and not self._tree.contains(site, node)]
        for call in self._tree.own(owner, cst.Call):
            if not self._facts.loops.is_backward(call) or self.may_be_off(call) or key not in self._keys(call):
                continue
            for start, goal in ((call, node), (node, call)):
                if loops and self._tree.loops(call)[:1] == loops[:1]:
                    met = flow.reaches_in_same_iteration(loops[0], start, [goal], avoiding=rebound)
                else:
                    met = not loops and flow.reaches(start, [goal], avoiding=rebound)
                if met:
                    return call
        return None

    def _keys(self, backward: cst.Call) -> set[str]:
        """Keys of the terms of a backward pass, those of names it is made of included."""
        if id(backward) in self._keys_of:
            return self._keys_of[id(backward)]
        found = self._keys_of[id(backward)] = set()
        pending = self.terms(backward)
        while pending:
            term = pending.pop()
            key = self._names.key(term)
            if not key or key in found:
                continue
            found.add(key)
            if isinstance(term, cst.Name):
                made = [each.value for each in self._names.bindings.lookup(term) if not each.path and each.value]
                pending.extend(part for value in made for part in sum_terms(value) if self._is_computed(part))
        return found

    def _is_computed(self, term: cst.BaseExpression) -> bool:
        """Whether a term of a sum is a name for the result of a call, so that it can carry a graph."""
        if not isinstance(term, cst.Name):
            return False
        bindings = self._names.bindings.lookup(term)
        if id(bindings) not in self._computed:
            self._computed[id(bindings)] = self._are_computed(bindings)
        return self._computed[id(bindings)]

    def _are_computed(self, bindings: list[Binding]) -> bool:
        found = [each for each in bindings if each.kind is Kind.ASSIGN]
        values = [each.value for each in found]
        plain = any((self._names.call(value) or "").startswith("builtins.") for value in values)
        return bool(found) and not plain and all(isinstance(each, (cst.Call, cst.BinaryOperation)) for each in values)

    def _is_returned_loss(self, node: cst.BaseExpression) -> bool:
        """Whether a name is what `training_step` returns for Lightning to run the backward pass over."""
        function = self._tree.function(node)
        if function is None or self._facts.hooks.of(function) != Hook(Owner.MODULE, TRAINING_STEP):
            return False
        around = self._tree.class_of(function)
        if around is None or self._facts.classes.constant(around, "automatic_optimization", True) is not True:
            return False
        returns = self._tree.own(function, cst.Return)
        return bool(returns) and all(self._names.key(each.value) == self._names.key(node) for each in returns)
