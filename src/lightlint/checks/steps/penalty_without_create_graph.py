from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.updates import Owner, body_of
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_argument, replace

_MEASURING = {"norm", "pow", "square", "abs", "sqrt"}
_CUTTING = {"detach", "item", "cpu", "numpy", "tolist"}
_DEPTH = 5


class PenaltyWithoutCreateGraph(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.of(call.func) != "torch.autograd.grad" or self.names.has_star(call):
            return
        given = self.names.argument(call, "create_graph", 4)
        if given is not None and self.names.constant(given.value) is not False:
            return
        owner = self.tree.owner(call)
        if not self._is_measured(owner, call):
            return
        if not self._comes_to_backward(owner, call):
            return
        draft = (
            insert_argument(self.code, call, "create_graph=True")
            if given is None
            else replace(self.code, given.value, "True")
        )
        self.report(
            call,
            "the gradients of a penalty without `create_graph=True` are constants, so the penalty trains nothing",
            repair=Repair("create the graph", draft, Applicability.UNSAFE),
        )

    def _is_measured(self, owner: Owner, call: cst.Call) -> bool:
        """Whether the function takes a norm or power of the gradients."""
        for name in self._derived(owner, call):
            above = self.tree.parent(name)
            if isinstance(above, cst.Attribute) and above.attr.value in _MEASURING:
                return True
            if isinstance(above, cst.BinaryOperation) and isinstance(above.operator, cst.Power):
                return True
            outer = self.tree.parent(above) if isinstance(above, cst.Arg) else None
            if isinstance(outer, cst.Call) and self.names.method(outer) in _MEASURING:
                return True
        return False

    def _derived(self, owner: Owner, call: cst.Call) -> list[cst.Name]:
        """The uses of names that get their values from the call, uses that cut the graph left out."""
        names = self.tree.own(body_of(owner), cst.Name)
        return [name for name in names if self._comes_from(name, call, 0) and not self._is_cut(name)]

    def _comes_from(self, name: cst.Name, call: cst.Call, depth: int) -> bool:
        bound = self.facts.reaching.bindings(name)
        return depth < _DEPTH and bool(bound) and all(self._bound_to(each, call, depth) for each in bound)

    def _bound_to(self, binding: Binding, call: cst.Call, depth: int) -> bool:
        if binding.kind is not Kind.ASSIGN or binding.value is None or self.tree.contains(binding.value, call):
            return binding.kind is Kind.ASSIGN and binding.value is not None and not self._cuts(binding.value)
        if self._cuts(binding.value):
            return False
        inner = self.tree.within(binding.value, cst.Name)
        return any(self._comes_from(each, call, depth + 1) for each in inner)

    def _cuts(self, value: cst.BaseExpression) -> bool:
        return any(self.names.method(each) in _CUTTING for each in self.tree.within(value, cst.Call))

    def _is_cut(self, name: cst.Name) -> bool:
        above = self.tree.parent(name)
        return isinstance(above, cst.Attribute) and above.attr.value in _CUTTING

    def _comes_to_backward(self, owner: Owner, call: cst.Call) -> bool:
        """Whether a sum that holds the penalty is differentiated: in its function, or where its result goes."""
        if self._summed(owner, lambda term: isinstance(term, cst.Name) and self._comes_from(term, call, 0)):
            return True
        if not isinstance(owner, cst.FunctionDef):
            return False
        returned = [
            each.value
            for each in self.tree.own(owner.body, cst.Return)
            if each.value is not None and not self._cuts(each.value)
        ]
        kept = any(
            self._comes_from(name, call, 0)
            for value in returned
            if not isinstance(value, (cst.Tuple, cst.List, cst.Dict))
            for name in self.tree.within(value, cst.Name)
        )
        calls = self.hooks.calls_of.get(owner, ()) or self.facts.steps.calls_of.get(owner, ())
        return kept and any(self._result_summed(each) for each in calls)

    def _result_summed(self, call: cst.Call) -> bool:
        owner = self.tree.owner(call)

        def is_result(term: cst.BaseExpression) -> bool:
            sources = self.facts.reaching.sources(term)
            return any(source is call or self._is_scaled(source, call) for source in sources)

        return self._summed(owner, is_result)

    def _is_scaled(self, source: cst.BaseExpression, call: cst.Call) -> bool:
        return (
            isinstance(source, cst.BinaryOperation)
            and isinstance(source.operator, cst.Multiply)
            and call in (source.left, source.right)
        )

    def _summed(self, owner: Owner, wanted: Callable[[cst.BaseExpression], bool]) -> bool:
        """Whether a wanted term is part of what a backward pass of a function starts from."""
        pending: list[cst.BaseExpression] = []
        for each in self.facts.updates.own(owner):
            if self.loops.is_backward(each) and isinstance(each.func, cst.Attribute):
                pending += [each.func.value, *(arg.value for arg in each.args[:1])]
        seen: set[cst.CSTNode] = set()
        while pending:
            term = pending.pop()
            if term in seen:
                continue
            seen.add(term)
            if wanted(term):
                return True
            match term:
                case cst.BinaryOperation():
                    pending += [term.left, term.right]
                case cst.Name():
                    pending += [each for each in self.facts.reaching.sources(term) if each is not term]
                    pending += self._augmented(term)
                case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))):
                    pending += [term.args[0].value] if method == "scale" and term.args else []
                    pending += [receiver] if method in {"mean", "sum", "squeeze"} else []
        return False

    def _augmented(self, name: cst.Name) -> list[cst.BaseExpression]:
        """The terms that `name += term` adds."""
        found = self.facts.reaching.bindings(name)
        return [each.value for each in found if each.kind is Kind.AUGMENT and each.value is not None]
