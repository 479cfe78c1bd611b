"""Through which results of modules the graph of a value runs: what a backward pass over it frees."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Binding, Kind

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts
    from lightlint.facts.tree import Tree

# methods whose result hangs on what the tensor was made of; `scaler.scale(loss)` on its argument
_KEEPING = {
    "abs", "clamp", "clone", "contiguous", "exp", "flatten", "float", "log", "mean", "pow", "reshape", "sigmoid", "softmax",
    "sqrt", "squeeze", "sum", "to", "transpose", "permute", "unsqueeze", "view", "scale", "cuda",
}  # fmt: skip
_LOSS = re.compile(r"crit|loss|bce|mse|(?:^|_)ce(?:$|_)", re.IGNORECASE)
_CUTTING = {"detach", "detach_", "data", "no_grad", "repackage_hidden"}
_DEPTH = 8


class CarriedGraphs:
    """The graphs that values of one file carry."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names
        self._known: dict[tuple[int, int], list[Binding]] = {}

    def of(self, expression: cst.BaseExpression, depth: int = 0) -> list[Binding]:
        """The names with the results of modules that a value's graph surely runs through."""
        known = (id(expression), depth)
        if known not in self._known:
            self._known[known] = self._of(expression, depth)
        return self._known[known]

    def _of(self, expression: cst.BaseExpression, depth: int) -> list[Binding]:
        match expression:
            case _ if depth > _DEPTH:
                return []
            case cst.Attribute(attr=cst.Name(value="backward")):
                return self.of(expression.value, depth)
            case cst.Name():
                return self._of_name(expression, depth)
            case cst.BinaryOperation():
                return [*self.of(expression.left, depth + 1), *self.of(expression.right, depth + 1)]
            case cst.UnaryOperation():
                return self.of(expression.expression, depth + 1)
            case cst.Call():
                return [each for part in self._carried(expression) for each in self.of(part, depth + 1)]
        return []

    def _of_name(self, name: cst.Name, depth: int) -> list[Binding]:
        found = self._facts.reaching.bindings(name)
        only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
        if only is None or only.value is None or self._facts.tree.owner(name) is not self._facts.tree.owner(only.site):
            return []
        inner = self.of(only.value, depth + 1)
        return [only, *inner] if self._is_recorded(only.value) else inner

    def _carried(self, call: cst.Call) -> list[cst.BaseExpression]:
        """The parts of a call whose graph its result surely hangs on."""
        given = [arg.value for arg in call.args]
        name = self._names.of(call.func) or ""
        if name.startswith(("torch.nn.functional.", "torch.mean", "torch.sum", "torch.log")):
            return given[:1] if name.startswith("torch.nn.functional.") else given
        method = self._names.method(call)
        if isinstance(call.func, cst.Attribute) and method in _KEEPING and not name:
            return [call.func.value, *(given if method == "scale" else [])]
        if self._facts.steps.callee(call) is not None or name.startswith(("torch.", "builtins.", "numpy.")):
            return []
        if self._is_recorded(call):
            origin = self._facts.values.constructor(call.func)
            node = self._facts.classes.local(origin.name) if origin is not None else None
            return [] if node is not None and cuts(self._facts.tree, node) else given
        is_loss = self._facts.criteria.of(call) is not None or bool(_LOSS.search(method))
        return given[:1] if is_loss else []

    def _is_recorded(self, value: cst.CSTNode | None) -> bool:
        """Whether a value surely is what a module with parameters that are trained gives."""
        if not isinstance(value, cst.Call) or self._facts.gradients.may_be_off(value):
            return False
        if any(graph.node is value for graph in self._facts.gradients.graphs(value)):
            return True
        key = self._names.key(value.func)
        return bool(key) and key in self._optimized

    def _asks(self, name: cst.Name) -> bool:
        """Whether a name is the keyword of `torch.zeros(1, requires_grad=True)`, which freezes nothing."""
        above = self._facts.tree.parent(name)
        return isinstance(above, cst.Arg) and above.keyword is name and self._names.constant(above.value) is True

    @cached_property
    def _optimized(self) -> set[str]:
        """The keys of modules whose parameters an optimizer is given, none where the file may freeze parameters."""
        tree = self._facts.tree
        if any(re.search("requires_grad|freeze", name.value) and not self._asks(name) for name in tree.all(cst.Name)):
            return set()
        found = set[str]()
        for call in tree.all(cst.Call):
            if self._facts.classes.name_is_a(self._names.call(call), "torch.optim.Optimizer"):
                inner = [each for each in tree.within(call, cst.Call) if self._names.method(each) == "parameters"]
                found |= {self._names.key(each.func.value) for each in inner if isinstance(each.func, cst.Attribute)}
        return found - {""}


def cuts(tree: Tree, node: cst.ClassDef) -> bool:
    """Whether a module's class may cut the graph of what it is given."""
    return bool(_CUTTING & {name.value for name in tree.within(node, cst.Name)})
