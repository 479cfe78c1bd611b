from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import Draft, drop_statement, replace


class LossRewrapped(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if self.names.method(call) != "backward" or not isinstance(func, cst.Attribute):
            return
        sources = [self._reduced(each) for each in self.facts.reaching.sources(func.value)]
        rewrapped = self.facts.rewrapped
        wraps = [each for each in sources if isinstance(each, cst.Call) and rewrapped.makes_leaf(each, call)]
        if wraps and len(wraps) == len(sources):
            for wrap in wraps:
                made = self.names.method(wrap)
                made = "detach().requires_grad_" if made == "requires_grad_" else made
                self.report(
                    wrap,
                    f"`{made}(...)` makes a tensor without history, so `backward()` on it reaches no parameter",
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

    def _judge_flag(self, receiver: cst.BaseExpression) -> None:
        """A note on `loss.requires_grad = True` in front of the backward pass: needless, or it hides that nothing trains."""
        if not isinstance(receiver, cst.Name):
            return
        owner = self.tree.owner(receiver)
        bound = self.facts.reaching.bindings(receiver)
        computed = bool(bound) and all(
            each.value is not None and self.facts.rewrapped.is_computed(each.value) for each in bound
        )
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
        given = self.facts.rewrapped.given(wrap)
        if given is None or not self.facts.rewrapped.is_computed(given):
            return None
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
