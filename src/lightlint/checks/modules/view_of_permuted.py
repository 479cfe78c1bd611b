from __future__ import annotations

import itertools

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import Kind
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, RawEdit

_CONTIGUOUS = {"torch.matmul", "torch.bmm", "torch.einsum", "torch.cat", "torch.stack", "torch.randn", "torch.zeros"}


class ViewOfPermuted(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "view" or self.names.of(func) is not None:
            return
        if any(arg.star or arg.keyword for arg in call.args) or len(call.args) < 2:
            return
        order = self._order(func.value)
        if order is None or len(call.args) >= len(order):
            return
        if not any(second == first + 1 for first, second in itertools.pairwise(order)):
            edit = RawEdit(*self.facts.span(func.attr), "reshape")
            self.report(
                call,
                f"`view` cannot merge dimensions that lie apart in memory after `{self._word(func.value)}`: a RuntimeError",
                repair=Repair("copy with `reshape` where it must", Draft((edit,)), Applicability.SAFE),
            )

    def _word(self, value: cst.BaseExpression) -> str:
        sources = self.facts.reaching.sources(value)
        return self.names.method(sources[0])

    def _order(self, value: cst.BaseExpression) -> list[int] | None:
        """The dimensions of a contiguous tensor in the order that `permute` or `transpose` gives them."""
        sources = self.facts.reaching.sources(value)
        call = sources[0] if len(sources) == 1 else None
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or self.names.of(call.func):
            return None
        places = [self.names.constant(arg.value) for arg in call.args]
        numbers = [each for each in places if isinstance(each, int)]
        if len(numbers) != len(places) or any(arg.keyword or arg.star for arg in call.args):
            return None
        if call.func.attr.value == "permute" and sorted(numbers) == list(range(len(numbers))):
            return numbers if self._is_contiguous(call.func.value, 0) else None
        if call.func.attr.value == "transpose" and sorted(numbers) == [1, 2] and self._rank(call.func.value, 0) == 4:
            return [0, 2, 1, 3] if self._is_contiguous(call.func.value, 0) else None
        return None

    def _is_contiguous(self, value: cst.BaseExpression, depth: int) -> bool:
        """Whether a value surely lies in memory as it is indexed: what a product of matrices or a layer gives."""
        sources = self.facts.reaching.sources(value)
        return bool(sources) and depth < 3 and all(self._is_fresh(each, depth) for each in sources)

    def _is_fresh(self, value: cst.BaseExpression, depth: int) -> bool:
        match value:
            case cst.BinaryOperation(operator=cst.MatrixMultiply()):
                return True
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="contiguous"))):
                return True
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="view"))):
                return self._is_contiguous(inner, depth + 1)
            case cst.Call():
                if self.names.call(value) in _CONTIGUOUS - {"torch.einsum"}:
                    return True
                origins = self.values.origins(value.func)
                return bool(origins) and all(each.name == "torch.nn.Linear" for each in origins)
        return False

    def _rank(self, value: cst.BaseExpression, depth: int) -> int:
        """The number of dimensions of a product, as far as a view or a transposition of one side says it; else 0."""
        if depth > 5:
            return 0
        found: set[int] = set()
        for source in self.facts.reaching.sources(value):
            match source:
                case cst.BinaryOperation(operator=cst.MatrixMultiply()):
                    found.add(max(self._rank(source.left, depth + 1), self._rank(source.right, depth + 1)))
                case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="view" | "reshape")), args=args):
                    plain = len(args) > 1 and not any(arg.star or arg.keyword for arg in args)
                    found.add(len(args) if plain else 0)
                case cst.Call(
                    func=cst.Attribute(value=inner, attr=cst.Name(value="transpose" | "softmax" | "contiguous"))
                ):
                    found.add(self._rank(inner, depth + 1))
                case cst.Call() if self.names.call(source) in {
                    "torch.matmul",
                    "torch.softmax",
                    "torch.nn.functional.softmax",
                }:
                    found.add(max((self._rank(arg.value, depth + 1) for arg in source.args[:2]), default=0))
                case cst.Name():
                    found.add(self._drawn(source, depth))
                case _:
                    found.add(0)
        return found.pop() if len(found) == 1 else 0

    def _drawn(self, name: cst.Name, depth: int) -> int:
        """The rank of an item of `(t.view(...) for t in parts)`."""
        bound = self.facts.reaching.bindings(name)
        value = bound[0].value if len(bound) == 1 and bound[0].kind is Kind.ASSIGN else None
        if isinstance(value, (cst.GeneratorExp, cst.ListComp)):
            return self._rank(value.elt, depth + 1)
        if isinstance(value, cst.Tuple) and bound[0].path and bound[0].path[0] < len(value.elements):
            return self._rank(value.elements[bound[0].path[0]].value, depth + 1)
        return 0
