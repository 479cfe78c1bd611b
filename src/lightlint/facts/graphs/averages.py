"""Averages that a module keeps on itself of what its own trained layers give: `self.c = 0.9 * self.c + 0.1 * z.mean(0)`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.graphs.autograd import KEEPING
from lightlint.facts.graphs.feeding import Feeding
from lightlint.facts.graphs.gradients import Gradients
from lightlint.facts.lightning.hooks import TRAINING_STEP
from lightlint.facts.objects.classes import NN_MODULE

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked
    from lightlint.facts.steps.keepers import Keeper

_REDUCING = {"mean", "sum", "std", "var"}
_PASSING = KEEPING | _REDUCING | {"clamp", "t", "transpose", "permute", "relu", "tanh", "sqrt", "square", "float"}
_FUNCTIONS = {f"torch.nn.functional.{name}" for name in ("normalize", "relu", "gelu", "silu", "softmax", "log_softmax")}
_FUNCTIONS |= {
    f"torch.{name}"
    for name in ("mean", "sum", "std", "var", "cat", "stack", "exp", "log", "sqrt", "tanh", "sigmoid", "relu", "abs")
}
_PRODUCTS = {"torch.matmul", "torch.mm"}
_DEPTH = 12

# what the parameters of the functions on the way were given, by the parameter's node, and what held there
Given = Mapping[int, tuple["cst.BaseExpression | None", "Given"]]


class Carried(IntEnum):
    """How much of a graph a value surely carries: that of one sample after another, or one of a whole batch."""

    NONE = 0
    GRAPH = 1
    OF_BATCH = 2


class Averages:
    """The averages of one file's modules."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._names = facts.names
        self._tree = facts.tree

    def carried(self, keeper: Keeper) -> list[cst.BaseExpression]:
        """The terms by which an average, which nothing begins anew, takes in the graphs of whole batches.

        A state that goes from sample to sample, as a leaky neuron's does, is no average of a batch.
        """
        node = self._tree.enclosing_class(keeper.node)
        if node is None or not self._facts.classes.is_a(node, NN_MODULE) or not self._is_kept(keeper, node):
            return []
        return [each for each in keeper.values if self._of(each, {}, 0) is Carried.OF_BATCH]

    def _is_kept(self, keeper: Keeper, node: cst.ClassDef) -> bool:
        """Whether nothing but the constructor and the average itself sets the attribute, and nothing cuts what it holds."""
        name = keeper.key.removeprefix("self.")
        if not keeper.key.startswith("self.") or "." in name or self._is_off(keeper.node):
            return False
        for target in self._tree.all(cst.AssignTarget):
            function = self._tree.function(target)
            made = function is not None and function.name.value == "__init__" and self._tree.contains(node, target)
            held = isinstance(target.target, cst.Attribute) and target.target.attr.value == name
            if held and not made and self._tree.parent(target) is not keeper.node:
                return False
        calls = (
            each for each in self._tree.all(cst.Call) if self._names.method(each) in {"detach", "detach_", "zero_"}
        )
        holders = (each.func.value for each in calls if isinstance(each.func, cst.Attribute))
        return not any(isinstance(each, cst.Attribute) and each.attr.value == name for each in holders)

    def _is_off(self, node: cst.CSTNode) -> bool:
        """Whether autograd may not record at a node while Lightning, or the code in sight, trains."""
        function = self._tree.function(node)
        hooks = {each.name for each in self._facts.hooks.reached(function)} if function is not None else set()
        if TRAINING_STEP in hooks:
            return self._facts.fact(Gradients).is_switched(node)
        return self._facts.fact(Gradients).may_be_off(node)

    def _of(self, value: cst.CSTNode | None, given: Given, depth: int, path: tuple[int, ...] = ()) -> Carried:
        if depth > _DEPTH:
            return Carried.NONE
        match value:
            case cst.Tuple() if path and path[0] < len(value.elements):
                return self._of(value.elements[path[0]].value, given, depth + 1, path[1:])
            case cst.Call():
                return self._of_call(value, given, depth, path)
            case cst.Name():
                return self._of_name(value, given, depth, path)
            case _ if path:
                return Carried.NONE
            case cst.BinaryOperation():
                return self._of_operation(value, given, depth)
            case cst.UnaryOperation(operator=cst.Minus()):
                return self._of(value.expression, given, depth + 1)
            case cst.Subscript() | cst.Attribute(attr=cst.Name(value="T")):
                return self._of(value.value, given, depth + 1)
        return Carried.NONE

    def _of_operation(self, value: cst.BinaryOperation, given: Given, depth: int) -> Carried:
        found = max(self._of(each, given, depth + 1) for each in (value.left, value.right))
        sums = isinstance(value.operator, cst.MatrixMultiply) and _is_turned(value.left)
        return Carried.OF_BATCH if found and sums else found

    def _of_call(self, call: cst.Call, given: Given, depth: int, path: tuple[int, ...]) -> Carried:
        callee = self._called(call)
        if callee is not None:
            return self._returned(callee, call, given, depth, path)
        name, method, func = self._names.of(call.func) or "", self._names.method(call), call.func
        if path or self._facts.fact(Gradients).is_switched(call):
            return Carried.NONE
        inner: list[cst.BaseExpression] = []
        if name in _FUNCTIONS | _PRODUCTS:
            inner = [arg.value for arg in call.args]
            inner += [each.value for arg in inner if isinstance(arg, (cst.List, cst.Tuple)) for each in arg.elements]
        elif isinstance(func, cst.Attribute) and not name and method in _PASSING:
            inner = [func.value]
        elif self._is_layer(func):
            return Carried.GRAPH
        found = max((self._of(each, given, depth + 1) for each in inner), default=Carried.NONE)
        turned = name in _PRODUCTS and _is_turned(inner[0])
        sums = turned or (method in _REDUCING and self._is_over_batch(call, 1 if name else 0))
        return Carried.OF_BATCH if found and sums else found

    def _called(self, call: cst.Call) -> cst.FunctionDef | None:
        """The function of this file that a call runs: `forward` for a call of the module itself."""
        node = self._facts.classes.self_class(call.func)
        forward = self._facts.classes.method(node, "forward") if node is not None else None
        return forward or self._facts.hooks.callee(call)

    def _is_layer(self, func: cst.BaseExpression) -> bool:
        """Whether a layer with parameters, which nothing in sight freezes, is called on the module that holds it."""
        node = self._facts.classes.self_class(func.value) if isinstance(func, cst.Attribute) else None
        if node is None or not isinstance(func, cst.Attribute) or self._facts.fact(Gradients).may_be_frozen:
            return False
        made = self._facts.classes.attribute_values(node, func.attr.value)
        return bool(made) and all(map(self._facts.fact(Gradients).makes_parameters, made))

    def _is_over_batch(self, call: cst.Call, position: int) -> bool:
        """Whether a reduction runs over the first dimension, or over all."""
        dim = self._names.argument(call, "dim", position) or self._names.argument(call, "axis")
        if dim is None:
            return not self._names.has_star(call)
        value = self._names.constant(dim.value)
        return value == 0 or (isinstance(value, (list, tuple)) and 0 in value)

    def _returned(
        self, function: cst.FunctionDef, call: cst.Call, given: Given, depth: int, path: tuple[int, ...]
    ) -> Carried:
        """What every `return` of a function carries."""
        if self._facts.fact(Gradients).is_switched(function.body):
            return Carried.NONE
        params = function.params
        passed = {
            id(each): (self._facts.values.given(function, call, each.name.value), given)
            for each in (*params.posonly_params, *params.params, *params.kwonly_params)
        }
        returns = self._facts.values.returns(function)
        return min((self._of(each, {**given, **passed}, depth + 1, path) for each in returns), default=Carried.NONE)

    def _of_name(self, name: cst.Name, given: Given, depth: int, path: tuple[int, ...]) -> Carried:
        found = self._facts.reaching.bindings(name)
        return min((self._of_binding(each, given, depth, path) for each in found), default=Carried.NONE)

    def _of_binding(self, binding: Binding, given: Given, depth: int, path: tuple[int, ...]) -> Carried:
        if binding.kind is Kind.ASSIGN:
            return self._of(binding.value, given, depth + 1, (*binding.path, *path))
        function = binding.scope
        if binding.kind is not Kind.PARAMETER or not isinstance(function, cst.FunctionDef):
            return Carried.NONE
        if id(binding.site) in given:
            value, around = given[id(binding.site)]
            return self._of(value, around, depth + 1, path)
        calls = self._facts.hooks.calls_of.get(function, ())
        if self._is_input(binding, function):
            return self._of_input(function, depth)
        passed = (self._facts.values.given(function, call, binding.name) for call in calls)
        return min((self._of(each, {}, depth + 1, path) for each in passed), default=Carried.NONE)

    def _is_input(self, binding: Binding, function: cst.FunctionDef) -> bool:
        """Whether a parameter is the input of a module: the first that its `forward` is given."""
        first = (*function.params.posonly_params, *function.params.params)[1:2]
        return function.name.value == "forward" and self._tree.class_of(function) is not None and binding.site in first

    def _of_input(self, forward: cst.FunctionDef, depth: int) -> Carried:
        node = self._tree.class_of(forward)
        if not isinstance(node, cst.ClassDef) or depth > _DEPTH:
            return Carried.NONE
        fed = Feeding(self._facts).gets_graph(node, lambda each: self._of(each, {}, depth + 4) is not Carried.NONE)
        return Carried.GRAPH if fed else Carried.NONE


def _is_turned(value: cst.BaseExpression) -> bool:
    """Whether a factor is transposed, so that the product sums over the batch: `onehot.t() @ z`."""
    match value:
        case cst.Attribute(attr=cst.Name(value="T")):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="t"))):
            return True
    return False
