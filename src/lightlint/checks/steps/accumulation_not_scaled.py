from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import Kind, dotted_name
from lightlint.facts.tree import Loop
from lightlint.finding import Applicability
from lightlint.fixes.edits import wrap

_SCALING = ("scale", "accum", "weight", "norm")


class AccumulationNotScaled(Check):
    def visit_Call(self, call: cst.Call) -> None:
        update = self.facts.updates.update(call)
        loop = self.tree.loops(call)[0] if self.tree.loops(call) else None
        number = self._number(call, loop) if update is not None and loop is not None else None
        if update is None or loop is None or number is None or self._is_scaled_elsewhere(number):
            return
        owner = self.tree.owner(call)
        backwards = [each for each in self.facts.updates.own(owner) if self.loops.is_backward(each)]
        backwards = [each for each in backwards if self.tree.loops(each)[:1] == [loop]]
        optimizers = {self.names.key(each.optimizer) for each in self.facts.updates.updates(owner)}
        if len(backwards) != 1 or len(optimizers) != 1 or not self._adds_up(backwards[0], call, loop):
            return
        loss = self._loss(backwards[0])
        if loss is None or not self._is_mean(loss, 0):
            return
        size = self.code.text_of(number)
        self.report(
            backwards[0],
            f"adds up the gradients of `{size}` mean losses without dividing them, which makes the step as much larger",
            repair=Repair(
                f"divide the loss by `{size}`", wrap(self.code, loss, "", f" / {size}"), Applicability.UNSAFE
            ),
        )

    def _number(self, step: cst.Call, loop: Loop) -> cst.BaseExpression | None:
        """The number of batches that a step waits for: `n` of `(i + 1) % n == 0`, alone or with `or last`."""
        window = self.facts.accumulation.window(step)
        if window is not None:
            return window.size
        tests = [
            test for test, outcome in self.facts.conditions(step) if outcome and self.tree.contains(loop.body, test)
        ]
        for each in (one for test in tests for one in self.tree.within(test, cst.Comparison)):
            left, target = each.left, each.comparisons[0]
            modulo = isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Modulo)
            if modulo and isinstance(target.operator, cst.Equal) and isinstance(left, cst.BinaryOperation):
                return left.right
        return None

    def _loss(self, backward: cst.Call) -> cst.BaseExpression | None:
        """What a backward pass starts from: `loss` of `loss.backward()` and of `scaler.scale(loss).backward()`."""
        if self.names.method(backward) != "backward" or backward.args or not isinstance(backward.func, cst.Attribute):
            return None
        receiver = backward.func.value
        if self.facts.updates.scaler_of(backward) is not None and isinstance(receiver, cst.Call) and receiver.args:
            return receiver.args[0].value
        return receiver if isinstance(receiver, cst.Name) else None

    def _adds_up(self, backward: cst.Call, step: cst.Call, loop: Loop) -> bool:
        """Whether gradients of several iterations meet: each iteration comes to the backward pass, nothing clears between."""
        owner = self.tree.owner(step)
        flow, clears = self.facts.flow(owner), self.facts.updates.clears(owner)
        tests = [test for test, _ in self.facts.conditions(backward) if self.tree.contains(loop.body, test)]
        meets = flow.reaches_in_later_iteration(loop, backward, [backward], avoiding=[*clears, step])
        return bool(clears) and not tests and meets and not self.facts.updates.handles_gradients(owner)

    def _is_scaled_elsewhere(self, size: cst.BaseExpression) -> bool:
        """Whether the file divides something else than a number of batches by the size, such as the learning rate."""
        last = dotted_name(size).rpartition(".")[2]
        if not last or self.names.constant(size) == 1:
            return True
        for division in self.tree.all(cst.BinaryOperation):
            if isinstance(division.operator, (cst.Divide, cst.Multiply)) and self._mentions(division.right, last):
                counts = any(
                    self.names.call(each) == "builtins.len" for each in self.tree.within(division.left, cst.Call)
                )
                if isinstance(division.operator, cst.Divide) and not counts:
                    return True
        assigned = [each for each in self.tree.all(cst.AugAssign) if isinstance(each.operator, cst.DivideAssign)]
        return any(self._mentions(each.value, last) for each in assigned)

    def _mentions(self, expression: cst.CSTNode, word: str) -> bool:
        return any(name.value == word for name in self.tree.within(expression, cst.Name))

    def _is_mean(self, expression: cst.BaseExpression, depth: int) -> bool:
        """Whether a value surely is a mean over the batch, or a sum of such means."""
        if depth > 6:
            return False
        match expression:
            case cst.Name():
                found = self.facts.reaching.bindings(expression)
                plain = all(each.kind is Kind.ASSIGN and each.value and not each.path for each in found)
                return (
                    bool(found) and plain and all(each.value and self._is_mean(each.value, depth + 1) for each in found)
                )
            case cst.BinaryOperation(operator=cst.Add()):
                return self._is_mean(expression.left, depth + 1) and self._is_mean(expression.right, depth + 1)
            case cst.BinaryOperation(operator=cst.Multiply()):
                for value, factor in ((expression.left, expression.right), (expression.right, expression.left)):
                    if self._is_mean(value, depth + 1) and not self._may_scale(factor):
                        return True
                return False
            case cst.Call():
                loss = self.facts.criteria.of(expression)
                if loss is not None:
                    return self.facts.criteria.reduction(loss) in ("mean", "batchmean")
                if self.names.method(expression) == "mean" and not expression.args:
                    return True
                callee = self.hooks.callee(expression)
                returned = self.values.returns(callee) if callee is not None else []
                return bool(returned) and all(each is not None and self._is_mean(each, depth + 1) for each in returned)
        return False

    def _may_scale(self, factor: cst.BaseExpression) -> bool:
        """Whether a factor may be the missing division: anything but numbers and plainly named hyperparameters."""
        words = [name.value.lower() for name in self.tree.within(factor, cst.Name)]
        calls = self.tree.within(factor, cst.Call)
        divides = any(isinstance(each.operator, cst.Divide) for each in self.tree.within(factor, cst.BinaryOperation))
        return bool(calls) or divides or any(part in word for word in words for part in _SCALING)
