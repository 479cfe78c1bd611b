from __future__ import annotations

import libcst as cst

from lightlint.check import Check

_SAMPLER = "torch.utils.data.WeightedRandomSampler"
_COUNTS = {"torch.bincount", "numpy.bincount", "torch.histc"}
_UNIQUE = {"numpy.unique": "return_counts", "torch.unique": "return_counts"}
_COUNTER = "collections.Counter"
_SAME = {  # what gives its first argument back, as another type
    "torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor", "torch.DoubleTensor", "torch.from_numpy",
    "numpy.array", "numpy.asarray", "builtins.list", "builtins.tuple",
}  # fmt: skip
_SAME_METHODS = {
    "float",
    "double",
    "numpy",
    "tolist",
    "to",
    "cpu",
    "astype",
    "type",
    "reciprocal",
    "sqrt",
    "pow",
    "values",
}
_MOST_CLASSES = 50  # numbers that somebody writes down
_DEPTH = 8


class SamplerWeightsPerClass(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) != _SAMPLER or self.names.has_star(call):
            return
        weights, number = self.names.argument(call, "weights", 0), self.names.argument(call, "num_samples", 1)
        if weights is None or number is None or isinstance(self.names.constant(number.value), int):
            return
        if self._is_per_class(weights.value):
            self.report(
                weights, "one weight a class, where each sample needs one: only the first few samples are ever drawn"
            )

    def _is_per_class(self, node: cst.CSTNode | None, depth: int = 0) -> bool:
        """Whether an expression has an item for each class: written down, or made of how often each occurs."""
        if node is None or depth > _DEPTH:
            return False
        if isinstance(node, cst.BinaryOperation):
            return self._is_per_class(node.left, depth + 1) or self._is_per_class(node.right, depth + 1)
        if isinstance(node, cst.List | cst.Tuple):
            numbers = [self.names.constant(each.value) for each in node.elements]
            return 1 < len(numbers) <= _MOST_CLASSES and all(isinstance(each, int | float) for each in numbers)
        if isinstance(node, cst.ListComp | cst.GeneratorExp):
            return self._counts_each(node, depth)
        if isinstance(node, cst.Call):
            return self._call_is(node, depth)
        if isinstance(node, cst.Name):
            bound = self.names.bindings.lookup(node)
            if len(bound) != 1 or bound[0].value is None:
                return False
            if bound[0].path:
                return bound[0].path[-1] in (1, -1) and self._is_unique_with_counts(bound[0].value)
            return self._is_per_class(bound[0].value, depth + 1)
        return False

    def _call_is(self, call: cst.Call, depth: int) -> bool:
        name = self.names.call(call)
        if name in _COUNTS or name == _COUNTER:
            return True
        if name in _SAME and call.args:
            return self._is_per_class(call.args[0].value, depth + 1)
        func = call.func
        is_same = isinstance(func, cst.Attribute) and func.attr.value in _SAME_METHODS
        return is_same and isinstance(func, cst.Attribute) and self._is_per_class(func.value, depth + 1)

    def _is_unique_with_counts(self, value: cst.CSTNode) -> bool:
        flag = _UNIQUE.get(self.names.call(value) or "")
        given = self.names.argument(value, flag) if flag and isinstance(value, cst.Call) else None
        return given is not None and self.names.constant(given.value) is True

    def _counts_each(self, node: cst.ListComp | cst.GeneratorExp, depth: int) -> bool:
        """Whether a comprehension goes over counts, or over the classes and looks up the count of each."""
        loop = node.for_in
        if loop.inner_for_in is not None or not isinstance(loop.target, cst.Name):
            return False
        if self._is_per_class(loop.iter, depth + 1):
            return True
        if self.names.call(loop.iter) != "builtins.range":
            return False
        for item in self.tree.within(node.elt, cst.Subscript):
            index = item.slice[0].slice if len(item.slice) == 1 else None
            is_class = isinstance(index, cst.Index) and self.names.key(index.value) == loop.target.value
            if is_class and self._is_per_class(item.value, depth + 1):
                return True
        return False
