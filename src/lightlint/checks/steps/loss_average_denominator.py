from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Divided
from lightlint.explore.rehearsals import Entry
from lightlint.facts.bindings import Kind

_DEPTH = 4


class LossAverageDenominator(Check):
    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        if isinstance(node.operator, cst.Divide) and isinstance(node.left, cst.Name):
            self._judge(node, node.left, node.right)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if isinstance(node.operator, cst.DivideAssign) and isinstance(node.target, cst.Name):
            self._judge(node, node.target, node.value)

    def _judge(self, node: cst.CSTNode, total: cst.Name, number: cst.BaseExpression) -> None:
        sources = self.facts.reaching.sources(number)
        if any(map(self._counts_batches, sources)):
            self._judge_weighted(node, total)
        if not any(map(self._counts_examples, sources)):
            return
        bound = [
            each for each in self.names.bindings.lookup(total) if each.site is not total and each.value is not node
        ]
        added = [each for each in bound if each.kind is Kind.AUGMENT and self._is_sum(each.site)]
        others = [each for each in bound if each not in added]
        zeros = all(self.names.constant(each.value) == 0 for each in others)
        if added and zeros and all(each.value and self._is_batch_mean(each.value) for each in added):
            self.report(
                node,
                f"`{total.value}` adds up means over batches and is divided by the number of examples, not of batches",
            )

    def _judge_weighted(self, node: cst.CSTNode, total: cst.Name) -> None:
        """Sums over batches that were weighted by their sizes, divided by the number of batches."""
        bound = [
            each for each in self.names.bindings.lookup(total) if each.site is not total and each.value is not node
        ]
        added = [each for each in bound if each.kind is Kind.AUGMENT and self._is_sum(each.site)]
        zeros = all(self.names.constant(each.value) == 0 for each in bound if each not in added)
        if added and zeros and all(each.value and self._is_weighted(each.value) for each in added):
            self.report(
                node,
                f"`{total.value}` adds up sums over examples and is divided by the number of batches, not of examples",
            )

    def _counts_batches(self, number: cst.BaseExpression) -> bool:
        """`len(loader)`, of what a loop of the function draws from."""
        if self.names.call(number) != "builtins.len" or not isinstance(number, cst.Call) or not number.args:
            return False
        key = self.names.key(number.args[0].value)
        loops = self.tree.own(self.tree.owner(number), cst.For)
        return bool(key) and any(self.names.key(self.values.iterated(each.iter)) == key for each in loops)

    def _is_weighted(self, value: cst.BaseExpression) -> bool:
        """Whether a value surely is the mean loss of a batch times its size: `loss.item() * x.size(0)`."""
        match value:
            case cst.BinaryOperation(operator=cst.Multiply()):
                return any(
                    self._is_batch_mean(mean) and self._is_size(size)
                    for mean, size in ((value.left, value.right), (value.right, value.left))
                )
        return False

    def _is_size(self, value: cst.BaseExpression) -> bool:
        match value:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[only]):
                return self.names.constant(only.value) == 0
            case cst.Call(args=[_]):
                return self.names.call(value) == "builtins.len"
            case cst.Subscript(value=cst.Attribute(attr=cst.Name(value="shape")), slice=[part]):
                index = part.slice
                return isinstance(index, cst.Index) and self.names.constant(index.value) == 0
        return False

    def _is_sum(self, site: cst.CSTNode) -> bool:
        above = self.tree.parent(site)
        return isinstance(above, cst.AugAssign) and isinstance(above.operator, cst.AddAssign)

    def _counts_examples(self, number: cst.BaseExpression) -> bool:
        """`len(loader.dataset)`."""
        if self.names.call(number) != "builtins.len" or not isinstance(number, cst.Call) or not number.args:
            return False
        counted = number.args[0].value
        return isinstance(counted, cst.Attribute) and counted.attr.value == "dataset"

    def _is_batch_mean(self, value: cst.BaseExpression | None, depth: int = 0) -> bool:
        """Whether a value surely is the mean loss of one batch: of a criterion as it is, or of a helper that gives it back."""
        while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
            if value.func.attr.value not in {"item", "detach", "cpu"} or value.args:
                break
            value = value.func.value
        sources = self.facts.reaching.sources(value) if value is not None and depth < _DEPTH else []
        return bool(sources) and all(self._is_mean_of(each, depth) for each in sources)

    def _is_mean_of(self, value: cst.BaseExpression, depth: int) -> bool:
        if not isinstance(value, cst.Call):
            return False
        loss = self.facts.criteria.of(value)
        if loss is not None:
            return self.facts.criteria.reduction(loss) == "mean"
        helpers = self.hooks.callees(value)
        given = [each for helper in helpers for each in self.values.returns(helper)]
        return bool(given) and all(self._is_batch_mean(each, depth + 1) for each in given)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """A sum of batch means divided by the number of examples."""
        for event in entry.of(Divided):
            over, by = event.left.traits, event.right.traits
            means = {"batch-mean", "summed"} <= over and "batch-sum" not in over
            if means and "samples" in by and "batches" not in by:
                yield Fault.at(
                    event, "adds up means over batches and is divided by the number of examples, not of batches"
                )
