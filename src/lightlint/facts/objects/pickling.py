"""What keeps a value from being pickled: lambdas, and functions and classes defined inside functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind, dotted_name
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.objects.classes import Classes

_DEPTH = 8
_OWN_PICKLING = {"__getstate__", "__reduce__", "__reduce_ex__"}
# library calls whose result keeps what it is given
_KEEPS = {
    "functools.partial", "builtins.list", "builtins.tuple", "builtins.dict",
    "torch.utils.data.Subset", "torch.utils.data.ConcatDataset", "torch.utils.data.random_split",
}  # fmt: skip
_KEEPS_TRANSFORMS = {"Lambda", "Compose", "RandomApply", "RandomChoice", "RandomOrder"}
_DATASET_ARGUMENTS = {"transform", "target_transform", "transforms", "loader", "is_valid_file"}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A part of a value that cannot be pickled; `held` where the value is not that part itself."""

    node: cst.CSTNode
    what: str
    held: bool = False


class Pickling:
    """Whether values of one file can be sent to another process. Answers only what is in plain sight."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, hooks: Hooks) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._hooks = hooks
        self._states: dict[cst.ClassDef, Obstacle | None] = {}

    def obstacle(self, expression: cst.CSTNode | None, depth: int = 0) -> Obstacle | None:
        """What keeps a value from being pickled, None where nothing in sight does."""
        if depth > _DEPTH:
            return None
        match expression:
            case cst.Lambda():
                return Obstacle(expression, "a lambda")
            case cst.Name():
                found = [each for each in self._names.bindings.lookup(expression) if dotted_name(each.value) != "None"]
                met = [self._bound(each, depth + 1) for each in found]
                return met[0] if met and all(met) else None
            case cst.Attribute():
                node = self._tree.enclosing_class(expression)
                if node is None or not self._classes.is_self(expression.value):
                    return None
                return self._each(self._classes.attribute_values(node, expression.attr.value), depth)
            case cst.IfExp():  # which of the two it is may hang on what a construction is given
                return self._each((expression.body, expression.orelse), depth)
            case cst.BooleanOperation():
                return self._each((expression.left, expression.right), depth)
            case cst.List() | cst.Tuple() | cst.Set() | cst.Dict():
                return self._held((each.value for each in expression.elements), depth)
            case cst.Call():
                return self._made(expression, depth)
        return None

    def state(self, node: cst.ClassDef) -> Obstacle | None:
        """What `__init__` puts on every instance of a class that keeps it from being pickled."""
        if node not in self._states:
            self._states[node] = None  # a class whose instances hold one another adds nothing
            if not any(self._classes.has_method(node, name) for name in _OWN_PICKLING):
                self._states[node] = self._of_attributes(self._stored(node))
        return self._states[node]

    def _of_attributes(self, stored: list[tuple[str, cst.BaseExpression]]) -> Obstacle | None:
        """What one attribute holds on every instance: whatever a test lets it be, and not only where a test says so."""
        for name in dict.fromkeys(name for name, _ in stored):
            values = [value for each, value in stored if each == name]
            met = self._each(values, 0) if len(values) > 1 or not self._is_conditional(values[0]) else None
            if met is not None:
                return replace(met, held=True)
        return None

    def _is_conditional(self, value: cst.BaseExpression) -> bool:
        """Whether a test in its function decides on a statement."""
        function = self._tree.function(value)
        tests = (each for each in self._tree.ancestors(value) if isinstance(each, cst.If))
        return any(self._tree.function(each) is function for each in tests)

    def _stored(self, node: cst.ClassDef) -> list[tuple[str, cst.BaseExpression]]:
        """What `__init__`, and the methods it calls, assign to attributes of `self`."""
        start = self._classes.method(node, "__init__")
        return [
            (target.target.attr.value, assign.value)
            for method in (self._hooks.reachable(start) if start is not None else [])
            for assign in self._tree.own(method, cst.Assign)
            for target in assign.targets
            if isinstance(target.target, cst.Attribute) and self._classes.is_self(target.target.value)
        ]

    def _bound(self, binding: Binding, depth: int) -> Obstacle | None:
        match binding.kind:
            case Kind.FUNCTION if isinstance(binding.scope, cst.FunctionDef):
                return Obstacle(binding.site, f"the nested function `{binding.name}`")
            case Kind.CLASS if isinstance(binding.scope, cst.FunctionDef):
                return Obstacle(binding.site, f"the local class `{binding.name}`")
            case Kind.ASSIGN if not binding.path or self._names.call(binding.value) in _KEEPS:
                return self.obstacle(binding.value, depth)
        return None

    def _made(self, call: cst.Call, depth: int) -> Obstacle | None:
        """What an instance, or another result of a call, holds."""
        if isinstance(call.func, cst.Name):
            met = self.obstacle(call.func, depth + 1)
            if met is not None and isinstance(met.node, cst.ClassDef):
                return Obstacle(met.node, f"an instance of {met.what}")
        name = self._names.call(call) or ""
        last = name.rpartition(".")[2]
        if name in _KEEPS or (name.startswith("torchvision.transforms.") and last in _KEEPS_TRANSFORMS):
            return self._held((arg.value for arg in call.args), depth)
        if name.startswith("torchvision.datasets."):
            given = (arg for arg in call.args if arg.keyword is not None and arg.keyword.value in _DATASET_ARGUMENTS)
            return self._held((arg.value for arg in given), depth)
        factory = self._hooks.callee(call)
        if factory is not None:
            return self._given_back(factory, depth)
        node = self._classes.local(name)
        if node is None or any(self._classes.has_method(node, each) for each in _OWN_PICKLING):
            return None
        return self.state(node) or self._held((*self._left_out(node, call), *self._kept_arguments(node, call)), depth)

    def _given_back(self, factory: cst.FunctionDef, depth: int) -> Obstacle | None:
        """What keeps the function or object that a function of this file makes from being pickled, on whatever way it returns."""
        if factory.asynchronous is not None or self._tree.own(factory, cst.Yield) or factory.decorators:
            return None
        met = [self.obstacle(each.value, depth + 1) for each in self._tree.own(factory, cst.Return)]
        return met[0] if met and all(met) else None

    def _left_out(self, node: cst.ClassDef, call: cst.Call) -> list[cst.BaseExpression]:
        """What `__init__` stores in the place of arguments that a construction leaves at None, as in `self.f = f or default`."""
        start = self._classes.method(node, "__init__")
        params = [*start.params.params, *start.params.kwonly_params] if start is not None else []
        left = {
            each.name.value
            for at, each in enumerate(params)
            if dotted_name(each.default) == "None" and self._names.argument(call, each.name.value, at - 1) is None
        }
        found: list[cst.BaseExpression] = []
        for _, value in self._stored(node) if left and not self._names.has_star(call) else ():
            match value:
                case cst.IfExp(body=one, orelse=other) | cst.BooleanOperation(operator=cst.Or(), left=one, right=other):
                    named = [isinstance(each, cst.Name) and each.value in left for each in (one, other)]
                    found += [other] if named[0] else [one] if named[1] else []
        return found

    def _kept_arguments(self, node: cst.ClassDef, call: cst.Call) -> list[cst.BaseExpression]:
        """The arguments of a construction that `__init__` stores under `self` as they are."""
        start = self._classes.method(node, "__init__")
        names = [each.name.value for each in (*start.params.params, *start.params.kwonly_params)] if start else []
        kept = {value.value for _, value in self._stored(node) if isinstance(value, cst.Name)}
        given = [self._names.argument(call, name, at - 1) for at, name in enumerate(names) if name in kept]
        return [arg.value for arg in given if arg is not None]

    def _first(self, values: Iterable[cst.CSTNode], depth: int) -> Obstacle | None:
        return next(filter(None, (self.obstacle(each, depth + 1) for each in values)), None)

    def _each(self, values: Iterable[cst.CSTNode], depth: int) -> Obstacle | None:
        """The first of several obstacles, where each value has one: which of the values it is cannot be known."""
        met = [self.obstacle(each, depth + 1) for each in values]
        return met[0] if met and all(met) else None

    def _held(self, values: Iterable[cst.CSTNode], depth: int) -> Obstacle | None:
        met = self._first(values, depth)
        return replace(met, held=True) if met else None
