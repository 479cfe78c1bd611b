from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import Kind
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import Draft, drop_statement, replace

_NEW = {"torch.tensor", "torch.FloatTensor", "torch.Tensor", "torch.cuda.FloatTensor", "torch.from_numpy"}
_VARIABLE = "torch.autograd.Variable"


class LossRewrapped(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if self.names.method(call) != "backward" or not isinstance(func, cst.Attribute):
            return
        sources = [self._reduced(each) for each in self.facts.reaching.sources(func.value)]
        wraps = [each for each in sources if isinstance(each, cst.Call) and self._makes_leaf(each)]
        if wraps and len(wraps) == len(sources):
            for wrap in wraps:
                self.report(
                    wrap,
                    f"`{self.names.method(wrap)}(...)` makes a tensor without history, so `backward()` on it reaches no parameter",
                    repair=Repair("keep the computed loss", self._draft(wrap), Applicability.UNSAFE),
                )
            return
        self._judge_flag(func.value)

    def _reduced(self, value: cst.BaseExpression) -> cst.BaseExpression:
        """`x` of `x.mean()` and `x.sum()`."""
        while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
            if value.func.attr.value not in {"mean", "sum"} or (self.names.of(value.func) or "").startswith("torch."):
                break
            value = value.func.value
        return value

    def _makes_leaf(self, call: cst.Call) -> bool:
        """Whether a call makes a new tensor of a computed value."""
        given = call.args[0].value if call.args and not call.args[0].star else None
        if given is None:
            return False
        name = self.names.of(call.func)
        if name == _VARIABLE:
            flag = self.names.argument(call, "requires_grad", 1)
            cut = isinstance(given, cst.Attribute) and given.attr.value == "data"
            return self._is_computed(given, 0) and (
                cut or (flag is not None and self.names.constant(flag.value) is True)
            )
        return name in _NEW and self._is_computed(given, 0)

    def _is_computed(self, value: cst.BaseExpression, depth: int) -> bool:
        """Whether a value comes from a call in sight that is no plain number, list or new tensor."""
        if depth > 4:
            return False
        match value:
            case cst.Name():
                found = self.facts.reaching.bindings(value)
                assigned = bool(found) and all(each.kind is Kind.ASSIGN and each.value for each in found)
                return assigned and all(each.value and self._is_computed(each.value, depth + 1) for each in found)
            case cst.List(elements=elements):
                return any(self._is_computed(each, depth + 1) for each in self._gathered(value)) or any(
                    self._is_computed(each.value, depth + 1) for each in elements
                )
            case cst.ListComp(elt=each) | cst.GeneratorExp(elt=each):
                return self._is_computed(each, depth + 1)
            case cst.Attribute(value=inner, attr=cst.Name(value="data")):
                return self._is_computed(inner, depth + 1)
            case cst.BinaryOperation():
                return self._is_computed(value.left, depth + 1) or self._is_computed(value.right, depth + 1)
            case cst.Call():
                name = self.names.of(value.func) or ""
                if self.facts.criteria.of(value) is not None:
                    return True
                if (
                    name == "builtins.sum"
                    and value.args
                    and isinstance(value.args[0].value, (cst.GeneratorExp, cst.ListComp))
                ):
                    return self._is_computed(value.args[0].value.elt, depth + 1)
                if name in {"builtins.float", "numpy.mean", "numpy.array"} and value.args:
                    return self._is_computed(value.args[0].value, depth + 1)
                method = self.names.method(value)
                if isinstance(value.func, cst.Attribute) and method in {
                    "item",
                    "detach",
                    "cpu",
                    "numpy",
                    "mean",
                    "sum",
                }:
                    return not name.startswith(("torch.", "numpy.")) and self._is_computed(value.func.value, depth + 1)
        return False

    def _gathered(self, display: cst.List) -> list[cst.BaseExpression]:
        """What is appended to a list that starts as this display."""
        assign = self.tree.parent(display)
        target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
        calls = self.tree.own(self.tree.owner(display), cst.Call) if isinstance(target, cst.Name) else []
        return [
            call.args[0].value
            for call in calls
            if self.names.method(call) == "append"
            and call.args
            and isinstance(call.func, cst.Attribute)
            and self.names.key(call.func.value) == self.names.key(target)
        ]

    def _judge_flag(self, receiver: cst.BaseExpression) -> None:
        """A note on `loss.requires_grad = True` in front of the backward pass: needless, or it hides that nothing trains."""
        if not isinstance(receiver, cst.Name):
            return
        owner = self.tree.owner(receiver)
        bound = self.facts.reaching.bindings(receiver)
        computed = bool(bound) and all(each.value is not None and self._is_computed(each.value, 0) for each in bound)
        for target in self.tree.own(owner, cst.AssignTarget):
            node = target.target
            flag = isinstance(node, cst.Attribute) and node.attr.value == "requires_grad"
            if computed and flag and isinstance(node, cst.Attribute) and self.names.key(node.value) == receiver.value:
                self.report(
                    node,
                    "changes nothing on a loss that can be differentiated, and hides an error on one that cannot",
                    tier=Tier.NOTE,
                )

    def _draft(self, wrap: cst.Call) -> Draft | None:
        given = wrap.args[0].value
        if isinstance(given, cst.Attribute) and given.attr.value == "data":
            given = given.value
        statement = self.tree.statement(wrap)
        targets = statement.targets if isinstance(statement, cst.Assign) and statement.value is wrap else ()
        itself = isinstance(given, cst.Name) and [self.names.key(each.target) for each in targets] == [given.value]
        if itself and isinstance(statement, cst.Assign):
            return drop_statement(self.code, statement)
        if any(isinstance(each, (cst.List, cst.ListComp)) for each in self.facts.reaching.sources(given)):
            stacks = self.code.text_of(wrap.func) == "torch.tensor"
            return replace(self.code, wrap, f"torch.stack({self.code.text_of(given)})") if stacks else None
        loss = isinstance(given, cst.Call) and self.facts.criteria.of(given) is not None
        whole = isinstance(given, cst.Name) or loss
        return replace(self.code, wrap, self.code.text_of(given)) if whole else None
