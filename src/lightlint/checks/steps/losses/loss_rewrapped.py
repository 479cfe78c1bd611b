from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Stepped
from lightlint.explore.questions.queries import in_sight
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import Draft, drop_statement, replace
from lightlint.values.core import Cut

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_WORTH = re.compile(r"^(?:discounted_|policy_|cumulative_|total_)?(?:returns?|rewards?|R|G|discounts?|gammas?)$")
_DEPTH = 6


class LossRewrapped(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if self.names.method(call) != "backward" or not isinstance(func, cst.Attribute):
            return
        found = list(self._leaves(func.value, None, 0))
        rewrapped = self.facts.rewrapped
        wraps = [
            leaf
            for leaf, anchor in found
            if isinstance(leaf, cst.Call) and rewrapped.makes_leaf(leaf, call, anchor or leaf)
        ]
        if wraps and len(wraps) == len(found):
            for wrap in wraps:
                self.report(
                    wrap,
                    f"`{self._made(wrap)}(...)` makes a tensor without history, so `backward()` on it reaches no parameter",
                    repair=Repair("keep the computed loss", self._draft(wrap), Applicability.UNSAFE),
                )
            return
        self._judge_flag(func.value)

    def _made(self, wrap: cst.Call) -> str:
        method = self.names.method(wrap)
        inner = self.names.method(getattr(wrap.func, "value", None)) if method == "requires_grad_" else ""
        return f"{'detach' if inner == 'clone' else inner}().{method}" if inner else method

    def _leaves(
        self, value: cst.BaseExpression, anchor: cst.Call | None, depth: int
    ) -> Iterator[tuple[cst.BaseExpression, cst.Call | None]]:
        """What a loss is made of: behind `mean()` and `sum()`, a sign, a factor without a graph, and a function's return.

        With each comes the call of the function that it stands in, if that is not where the walk began.
        """
        for source in self.facts.reaching.sources(value):
            inner = self._inner(source) if depth < _DEPTH else None
            function = self.hooks.callee(source) if isinstance(source, cst.Call) and anchor is None else None
            returns = self.values.returns(function) if function is not None else []
            if inner is not None:
                yield from self._leaves(inner, anchor, depth + 1)
            elif isinstance(source, cst.Call) and len(returns) == 1 and returns[0] is not None and depth < _DEPTH:
                yield from self._leaves(returns[0], source, depth + 1)
            else:
                yield source, anchor

    def _inner(self, value: cst.BaseExpression) -> cst.BaseExpression | None:
        """`x` of `x.mean()`, `x.sum()`, `torch.sum(x)`, `-x` and `x * returns`."""
        match value:
            case cst.UnaryOperation(operator=cst.Minus()):
                return value.expression
            case cst.BinaryOperation(operator=cst.Multiply()):
                for part, other in ((value.left, value.right), (value.right, value.left)):
                    if self._is_factor(other):
                        return part
            case cst.Call() if self.names.of(value.func) in {"torch.mean", "torch.sum"} and value.args:
                return value.args[0].value
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value="mean" | "sum"))):
                return receiver if not (self.names.of(value.func) or "").startswith("torch.") else None
        return None

    def _is_factor(self, value: cst.BaseExpression) -> bool:
        """Whether a value carries no graph: a number, a batch, or by its name what a policy's steps were worth."""
        func = value.func if isinstance(value, cst.Call) else value
        word = self.names.key(func).rpartition(".")[2]
        return bool(_WORTH.search(word)) or self.facts.graphless.of(value) is not None

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

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes that reach no parameter, over a tensor made of the numbers of a loss."""
        for path in entry.paths:
            steps = path.of(Stepped)
            stepped = {each for event in steps for each in event.parameters}
            for event in path.of(Backward):
                cut = _rewrapped(event) if stepped.isdisjoint(event.parameters) else None
                if cut is not None and ((event.loss is not None and event.loss.leaf) or _is_trained(cut, steps)):
                    message = (
                        f"`{cut.how}(...)` makes a tensor without history, so `backward()` on it reaches no parameter"
                    )
                    yield Fault(cut.site, message, also=event.where.places)


def _rewrapped(event: Backward) -> Cut | None:
    """The last place where what a pass starts from was made anew of numbers, if it reaches nothing that is trained."""
    loss = event.loss
    if loss is None or any(each.parameter for each in event.parameters) or not in_sight([loss]):
        return None
    last = max(loss.cuts, key=lambda cut: cut.made, default=None)
    made = last is not None and (last.how in _MAKERS or (last.how in ("detach", "data") and loss.leaf))
    return last if made else None


def _is_trained(cut: Cut, steps: Sequence[Stepped]) -> bool:
    """Whether an optimizer steps what the gradient would have reached; where none is in sight, whether that is a network's:
    an input that an attack makes anew in each turn is cut off from that of the turn before, and meant to be."""
    if not steps:
        return any(each.parameter for each in cut.parameters)
    return any(not each.optimizer.escaped and cut.parameters & set(each.parameters) for each in steps)


_MAKERS = frozenset(["tensor", "as_tensor", "Tensor", "FloatTensor", "from_numpy", "Variable", "scalar_tensor"])
