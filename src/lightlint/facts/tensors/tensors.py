"""Which values surely are tensors, and which of them are made on the CPU."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import Names
from lightlint.facts.code.reaching import Reaching
from lightlint.facts.code.tree import Tree
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.objects.classes import MODULE, Classes
from lightlint.facts.values.values import Values

FACTORIES = {
    f"torch.{name}"
    for name in (
        "tensor", "as_tensor", "zeros", "ones", "full", "empty", "arange", "linspace", "logspace", "eye", "rand", "randn",
        "randint", "randperm", "from_numpy", "hann_window", "hamming_window", "FloatTensor", "LongTensor", "Tensor",
    )
}  # fmt: skip
KEEPING = {
    "view", "reshape", "unsqueeze", "squeeze", "repeat", "expand", "transpose", "permute", "float", "long", "double", "half",
    "int", "clone", "contiguous", "flatten", "t", "pow", "exp", "log", "sqrt", "abs", "flip", "roll", "triu", "tril", "cumsum",
    "cumprod", "bool", "mul", "add", "detach", "fill_", "normal_", "uniform_", "zero_", "scatter_", "repeat_interleave",
}  # fmt: skip
_REDUCING = {"sum", "mean", "max", "min", "prod", "norm", "std", "numel"}
_NUMBERS = {f"builtins.{name}" for name in ("len", "float", "int", "max", "min", "sum")}
# functions of torch whose result lies where their first argument does, beside which numbers may stand
_FUNCTIONS = {
    f"torch.{name}"
    for name in (
        "exp", "log", "sqrt", "rsqrt", "square", "abs", "sin", "cos", "tan", "tanh", "sigmoid", "pow", "clamp", "neg", "erf",
        "reciprocal", "floor", "ceil", "round", "cumsum", "cumprod", "flip", "roll", "tril", "triu", "unsqueeze", "flatten",
        "reshape", "outer", "ger", "matmul", "mm", "kron", "mul", "add", "sub", "div", "softmax",
    )
}  # fmt: skip
_JOINING = {"torch.stack", "torch.cat", "torch.concat", "torch.hstack", "torch.vstack"}
_OF_ANY_SIZE = {"torch.tensor", "torch.as_tensor"}
_SEQUENCES = {f"builtins.{name}" for name in ("list", "tuple", "sorted", "range")} | {
    f"numpy.{name}" for name in ("arange", "linspace", "logspace", "concatenate", "stack", "hanning", "hamming")
}
_AS_ARRAY = {"numpy.array", "numpy.asarray"}
_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.FloorDivide, cst.Power)
_DEPTH = 24
_BINDING = {"builtins.staticmethod", "builtins.classmethod"}


class Tensors:
    """The tensors of one file, followed through names, methods and functions of the file."""

    def __init__(
        self, tree: Tree, names: Names, classes: Classes, hooks: Hooks, values: Values, reaching: Reaching
    ) -> None:
        self._tree = tree
        self._classes = classes
        self._names = names
        self._hooks = hooks
        self._values = values
        self._reaching = reaching
        self._known: dict[tuple[cst.CSTNode, tuple[int, ...], bool], bool] = {}

    def is_made_here(
        self, value: cst.CSTNode | None, path: tuple[int, ...] = (), depth: int = 0, *, any_size: bool = False
    ) -> bool:
        """Whether a value (or the part of it at `path`) surely is a tensor that a torch factory made without a device, with
        at least one dimension for `torch.tensor` unless `any_size` is asked for, and that was not moved since."""
        if depth > _DEPTH or value is None:
            return False
        key = (value, path, any_size)
        if key not in self._known:
            self._known[key] = False  # what is made of itself alone is made of nothing
            self._known[key] = self._is_made_here(value, path, depth, any_size=any_size)
        return self._known[key]

    def _is_made_here(self, value: cst.CSTNode, path: tuple[int, ...], depth: int, *, any_size: bool) -> bool:
        if path:
            return self._part(value, path, depth + 1, any_size=any_size)
        match value:
            case cst.Name():
                found = self._reaching.bindings(value)
                return bool(found) and all(
                    each.kind is Kind.ASSIGN and self.is_made_here(each.value, each.path, depth + 1, any_size=any_size)
                    for each in found
                )
            case cst.Attribute():
                kept = self._kept_before(value)
                return bool(kept) and all(
                    self.is_made_here(each, path, depth + 1, any_size=any_size) for each, path in kept
                )
            case cst.Subscript():
                return self.is_made_here(value.value, (), depth + 1, any_size=any_size)
            case cst.BinaryOperation():
                return self._is_result(value, depth, any_size=any_size)
            case cst.UnaryOperation(operator=cst.Minus()):
                return self.is_made_here(value.expression, (), depth + 1, any_size=any_size)
            case cst.Call():
                return self._is_made_by(value, depth, any_size=any_size)
        return False

    def _kept_before(self, read: cst.Attribute) -> list[tuple[cst.BaseExpression | None, tuple[int, ...]]]:
        """What `__init__` gave an attribute of `self` before it reads it there; empty where others may set it, too."""
        node, function = self._classes.self_class(read.value), self._tree.function(read)
        if node is None or function is None or function.name.value != "__init__" or self._tree.loops(read):
            return []
        sources = self._classes.attribute_sources(node, read.attr.value)
        if not all(value is not None and self._tree.function(value) is function for value, _ in sources):
            return []
        place = self._tree.order(self._tree.statement(read) or read)
        return [(value, path) for value, path in sources if value and self._tree.order(value) < place]

    def _is_result(self, value: cst.BinaryOperation, depth: int, *, any_size: bool) -> bool:
        """Whether arithmetic gives such a tensor: one that has a dimension takes numbers and tensors of its own device only."""
        both = (value.left, value.right)
        if isinstance(value.operator, _ARITHMETIC):
            sized = [side for side in both if self.is_made_here(side, (), depth + 1)]
            if len(sized) == 1 and self._may_be_number(both[0] if sized[0] is both[1] else both[1]):
                return True
        sides = [self.is_made_here(side, (), depth + 1, any_size=any_size) for side in both]
        return all(sides) or (any(sides) and any(self._is_number(side, depth) for side in both))

    def _may_be_number(self, value: cst.BaseExpression) -> bool:
        """Whether a value may be a number: a name, an attribute, or arithmetic with such."""
        match value:
            case cst.BinaryOperation():
                return self._may_be_number(value.left) and self._may_be_number(value.right)
            case cst.UnaryOperation():
                return self._may_be_number(value.expression)
            case cst.Call():
                return (self._names.call(value) or "").startswith("math.") or self._names.call(value) in _NUMBERS
        return isinstance(value, (cst.Name, cst.Attribute, cst.Integer, cst.Float))

    def _is_number(self, value: cst.BaseExpression, depth: int) -> bool:
        """Whether a value is a number, or a tensor without dimensions made of one that was made here: `counts.sum()`."""
        if isinstance(value, (cst.Integer, cst.Float)):
            return True
        if not isinstance(value, cst.Call):
            return False
        reduced = value.func.value if isinstance(value.func, cst.Attribute) and not value.args else None
        is_reduction = self._names.method(value) in _REDUCING and reduced is not None
        made = is_reduction and self.is_made_here(reduced, (), depth + 1, any_size=True)
        return made or self._names.call(value) in _NUMBERS

    def _is_made_by(self, call: cst.Call, depth: int, *, any_size: bool) -> bool:
        name = self._names.call(call) or ""
        if name in FACTORIES:
            first = call.args[0].value if call.args else None
            sized = name not in _OF_ANY_SIZE or self._is_sequence(first, depth)
            sized = sized and not (isinstance(first, cst.Tuple) and not first.elements)  # `torch.zeros(())`
            elsewhere = {"device", "requires_grad"} & {arg.keyword.value for arg in call.args if arg.keyword}
            return (sized or any_size) and not elsewhere and not self._names.has_star(call)
        if name in _FUNCTIONS | _JOINING:
            return self._is_computed(call, depth, any_size=any_size)
        if isinstance(call.func, cst.Attribute) and self._is_moved_nowhere(call):
            return self.is_made_here(call.func.value, (), depth + 1, any_size=any_size)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in KEEPING and not name.startswith("torch."):
            return self.is_made_here(call.func.value, (), depth + 1, any_size=any_size)
        callee = self._hooks.callee(call)
        returns = self._values.returns(callee) if callee is not None and self._is_plain(callee) else []
        return bool(returns) and all(self.is_made_here(each, (), depth + 1, any_size=any_size) for each in returns)

    def _is_sequence(self, value: cst.CSTNode | None, depth: int) -> bool:
        """Whether a value surely is a list or the like: a tensor made of it has a dimension."""
        if depth > _DEPTH:
            return False
        match value:
            case cst.List() | cst.Tuple() | cst.ListComp():
                return True
            case cst.Call():
                if self._names.call(value) in _AS_ARRAY and value.args:
                    return self._is_sequence(value.args[0].value, depth + 1)
                return self._names.call(value) in _SEQUENCES
            case cst.BinaryOperation() if isinstance(value.operator, _ARITHMETIC):
                return self._is_sequence(value.left, depth + 1) or self._is_sequence(value.right, depth + 1)
            case cst.Name():
                found = self._reaching.bindings(value)
                plain = all(each.kind is Kind.ASSIGN and not each.path for each in found)
                return bool(found) and plain and all(self._is_sequence(each.value, depth + 1) for each in found)
        return False

    def _is_computed(self, call: cst.Call, depth: int, *, any_size: bool) -> bool:
        """Whether a function of torch gives such a tensor: `torch.exp(-x / 2)`, `torch.stack([x, y])`."""
        given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        words = {arg.keyword.value for arg in call.args if arg.keyword}
        if not given or words - {"dim", "axis", "min", "max", "dims"} or self._names.has_star(call):
            return False
        if self._names.call(call) in _JOINING:
            parts = given[0].elements if isinstance(given[0], (cst.List, cst.Tuple)) else ()
            return bool(parts) and all(
                self.is_made_here(each.value, (), depth + 1, any_size=any_size) for each in parts
            )
        return self.is_made_here(given[0], (), depth + 1, any_size=any_size)

    def _is_plain(self, function: cst.FunctionDef) -> bool:
        """Whether a call of a function gives what the function returns: no decorator changes it."""
        return all(self._names.of(each.decorator) in _BINDING for each in function.decorators)

    def _is_moved_nowhere(self, call: cst.Call) -> bool:
        """Whether a call is `x.to(self.device)` in the `__init__` of a LightningModule, whose device is the CPU by then."""
        device = call.args[0].value if len(call.args) == 1 and self._names.method(call) == "to" else None
        if not isinstance(device, cst.Attribute) or device.attr.value != "device":
            return False
        if not isinstance(device.value, cst.Name) or not self._classes.is_a(
            self._classes.self_class(device.value), MODULE
        ):
            return False
        found = self._names.bindings.lookup(device.value)
        scope = found[0].scope if len(found) == 1 else None
        return isinstance(scope, cst.FunctionDef) and scope.name.value == "__init__"

    def _part(self, value: cst.CSTNode, path: tuple[int, ...], depth: int, *, any_size: bool) -> bool:
        if isinstance(value, (cst.Tuple, cst.List)) and 0 <= path[0] < len(value.elements):
            return self.is_made_here(value.elements[path[0]].value, path[1:], depth, any_size=any_size)
        callee = self._callee(value) if isinstance(value, cst.Call) else None
        returns = self._values.returns(callee) if callee is not None else []
        return bool(returns) and all(self.is_made_here(each, path, depth, any_size=any_size) for each in returns)

    def _callee(self, call: cst.Call) -> cst.FunctionDef | None:
        """As `hooks.callee`, and methods of this file's classes on their instances."""
        found = self._hooks.callee(call)
        if found is not None or not isinstance(call.func, cst.Attribute):
            return found
        origin = self._values.constructor(call.func.value)
        node = self._classes.local(origin.name) if origin else None
        return self._classes.method(node, call.func.attr.value) if node is not None else None
