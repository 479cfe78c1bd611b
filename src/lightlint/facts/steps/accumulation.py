"""Gradient accumulation: optimizer steps, and the `(i + 1) % n == 0` tests that let only every n-th batch step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Loop, Tree
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.values.values import Values

_SPELLED_OPTIMIZER = re.compile(r"optim|(?:^|_)opt(?:$|_|\d)", re.IGNORECASE)
_SPELLED_SCHEDULER = re.compile(r"sched", re.IGNORECASE)
_DEPTH = 4
_Outcome = tuple[cst.BaseExpression, bool]
_Parts = Callable[[cst.BaseExpression, bool], Iterator[_Outcome]]


@dataclass(frozen=True, slots=True)
class Window:
    """A test that holds once in `size` values of `counter`; in `(i + 1) % n == 0` the counter is `i`, the shift 1."""

    modulo: cst.BinaryOperation
    counter: cst.BaseExpression
    shift: int
    size: cst.BaseExpression


class Accumulation:
    """The optimizer steps of one file and the windows they wait for."""

    def __init__(
        self,
        tree: Tree,
        names: Names,
        hooks: Hooks,
        values: Values,
        conditions: Callable[[cst.CSTNode], list[tuple[cst.BaseExpression, bool]]],
    ) -> None:
        self._tree = tree
        self._names = names
        self._hooks = hooks
        self._values = values
        self._conditions = conditions
        self._told: dict[int, frozenset[str]] = {}  # by the `id` of a function

    def is_step(self, call: cst.Call) -> bool:
        """Whether a call steps an optimizer, itself or through a scaler.

        The receiver is an optimizer by its constructor, by being told to `zero_grad()` too, or, weaker, by its spelling.
        """
        if self._names.method(call) != "step" or not isinstance(call.func, cst.Attribute):
            return False
        receiver = call.func.value
        if self._values.is_scaler(receiver):
            return True
        candidates = [receiver, *(arg.value for arg in call.args[:1])]
        return any(self._is_optimizer(each) for each in candidates)

    def _is_optimizer(self, expression: cst.BaseExpression) -> bool:
        if self._values.is_optimizer(expression):
            return True
        key = self._names.key(expression)
        told = key in self._told_to_clear(self._tree.owner(expression))
        last = key.rpartition(".")[2]
        spelled = _SPELLED_OPTIMIZER.search(last) and not _SPELLED_SCHEDULER.search(last)
        return bool(key) and (told or bool(spelled))

    def _told_to_clear(self, function: cst.FunctionDef | cst.Module) -> frozenset[str]:
        """The keys of what a function tells to `zero_grad()`."""
        if id(function) not in self._told:
            calls = [each for each in self._tree.within(function, cst.Call) if self._names.method(each) == "zero_grad"]
            funcs = (each.func for each in calls)
            self._told[id(function)] = frozenset(
                self._names.key(each.value) for each in funcs if isinstance(each, cst.Attribute)
            )
        return self._told[id(function)]

    def comes_to_step(self, call: cst.Call) -> bool:
        """Whether a call steps an optimizer, itself or in a helper of this file."""
        callee = self._hooks.callee(call)
        helpers = self._hooks.reachable(callee) if callee else []
        return self.is_step(call) or any(
            self.is_step(each) for helper in helpers for each in self._tree.own(helper, cst.Call)
        )

    def window(self, node: cst.CSTNode) -> Window | None:
        """The window that has to be full for a node to run, tested in the innermost loop around it.

        None where the test has another way to hold, as in `(i + 1) % n == 0 or last`.
        """
        around = self._tree.loops(node)
        found = self._windows(self._conditions(node), 0)
        return next((each for each in found if not around or self._tree.contains(around[0], each.modulo)), None)

    def counted(self, node: cst.CSTNode) -> cst.BaseExpression | None:
        """`n` of the `count >= n` that a node waits for, where the innermost loop adds 1 to `count` each time and the
        node's branch sets it to 0 again; else None."""
        around = self._tree.loops(node)
        for test, outcome in self._conditions(node) if around else []:
            if outcome and isinstance(test, cst.Comparison) and self._tree.contains(around[0].body, test):
                size = self._counted(test, around[0])
                if size is not None:
                    return size
        return None

    def _counted(self, test: cst.Comparison, loop: Loop) -> cst.BaseExpression | None:
        left, operator, right = test.left, test.comparisons[0].operator, test.comparisons[0].comparator
        if isinstance(operator, (cst.LessThanEqual, cst.Equal)) and self._counts_up(right, test, loop):
            left, right = right, left
        elif not isinstance(operator, (cst.GreaterThanEqual, cst.Equal)) or not self._counts_up(left, test, loop):
            return None
        return right if len(test.comparisons) == 1 else None

    def _counts_up(self, counter: cst.BaseExpression, test: cst.Comparison, loop: Loop) -> bool:
        """Whether a loop adds 1 to a counter in every iteration, and only the branch behind a test sets it, to 0."""
        key = self._names.key(counter)
        branch = next((each for each in self._tree.ancestors(test) if isinstance(each, cst.If)), None)
        if not key or branch is None or not isinstance(counter, (cst.Name, cst.Attribute)):
            return False
        added = [each for each in self._tree.own(loop.body, cst.AugAssign) if self._names.key(each.target) == key]
        set_anew = [
            (self._tree.contains(branch.body, each), self._names.constant(each.value))
            for each in self._tree.own(loop.body, cst.Assign)
            for target in each.targets
            if self._names.key(target.target) == key
        ]
        by_one = len(added) == 1 and isinstance(added[0].operator, cst.AddAssign)
        return (
            by_one
            and self._names.constant(added[0].value) == 1
            and set(self._conditions(added[0])) <= set(self._conditions(branch))
            and bool(set_anew)
            and all(each == (True, 0) for each in set_anew)
        )

    def is_unbound(self, window: Window) -> bool:
        """Whether nothing in sight binds the name a window counts with."""
        if not isinstance(window.counter, cst.Name) or self._names.bindings.stars:
            return False
        return not self._names.bindings.lookup(window.counter) and not self._names.bindings.is_builtin(window.counter)

    def is_left_over(self, window: Window, loop: Loop) -> bool:
        """Whether the name a window counts with gets its values before and after the loop only, in plain sight."""
        if not isinstance(window.counter, cst.Name):
            return False
        found = self._names.bindings.lookup(window.counter)
        outermost = [loop, *self._tree.loops(loop)][-1]
        return bool(found) and all(
            binding.kind in {Kind.ASSIGN, Kind.LOOP, Kind.AUGMENT}
            and self._tree.owner(binding.site) is self._tree.owner(loop)
            and not self._tree.contains(outermost, binding.site)
            for binding in found
        )

    def _windows(self, outcomes: Iterable[_Outcome], depth: int, parts: _Parts | None = None) -> Iterator[Window]:
        parts = parts or _parts
        for test, outcome in outcomes:
            match test:
                case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
                    if isinstance(operator, cst.Equal if outcome else cst.NotEqual):
                        yield from self._modulo(test.left)
                        yield from self._modulo(right)
                case cst.BinaryOperation() if not outcome:
                    yield from self._modulo(test)
                case cst.Name() if depth < _DEPTH:
                    found = self._names.bindings.lookup(test)
                    value = found[0].value if len(found) == 1 and found[0].kind is Kind.ASSIGN else None
                    if value is not None and not found[0].path:
                        yield from self._windows(parts(value, outcome), depth + 1, parts)

    def _modulo(self, expression: cst.BaseExpression) -> Iterator[Window]:
        if not isinstance(expression, cst.BinaryOperation) or not isinstance(expression.operator, cst.Modulo):
            return
        counter, shift = expression.left, 0
        if isinstance(counter, cst.BinaryOperation) and isinstance(counter.operator, (cst.Add, cst.Subtract)):
            sign = -1 if isinstance(counter.operator, cst.Subtract) else 1
            for side, other in ((counter.left, counter.right), (counter.right, counter.left)):
                value = self._names.constant(other)
                if isinstance(value, int):
                    counter, shift = side, sign * value
                    break
        if isinstance(counter, (cst.Name, cst.Attribute)):
            yield Window(expression, counter, shift, expression.right)


def _parts(test: cst.BaseExpression, outcome: bool) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """The tests that surely came out one way when a whole test did."""
    match test:
        case cst.UnaryOperation(operator=cst.Not()):
            yield from _parts(test.expression, not outcome)
        case cst.BooleanOperation(operator=operator) if isinstance(operator, cst.And if outcome else cst.Or):
            yield from _parts(test.left, outcome)
            yield from _parts(test.right, outcome)
        case _:
            yield test, outcome
