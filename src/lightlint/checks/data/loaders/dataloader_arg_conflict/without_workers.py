"""What an argument of a DataLoader is where it starts no workers: `2` of `4 if workers > 0 else 2`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.ranks.comparisons import mirrored, outcomes
from lightlint.facts.values.sources import asked_by

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 4


class WithoutWorkers:
    """Values of one file as far as tests on a number of workers choose them, where that number is 0."""

    def __init__(self, facts: FileFacts, workers: cst.BaseExpression) -> None:
        self._facts = facts
        self._names = facts.names
        self._workers = self._source(workers)

    def values(self, value: cst.BaseExpression) -> list[cst.BaseExpression]:
        """All that an expression can be without workers; empty where no test tells that from what it is with some."""
        found = self._left(value, 0)
        return found if self._is_told(value, 0) else []

    def _left(self, value: cst.BaseExpression, depth: int) -> list[cst.BaseExpression]:
        """The expressions that a value can come from without workers."""
        value = self._kept(value)
        if isinstance(value, cst.IfExp):
            taken = self._outcome(value.test, 0)
            arms = [arm for arm, outcome in ((value.body, True), (value.orelse, False)) if taken is not (not outcome)]
            return [each for arm in arms for each in self._left(arm, depth)]
        found = self._bindings(value, depth)
        kept = [each.value for each in found if each.value and self._may_run(each)]
        return [source for each in kept for source in self._left(each, depth + 1)] if found else [value]

    def _is_told(self, value: cst.BaseExpression, depth: int) -> bool:
        """Whether a test on the number of workers has a say in what a value is."""
        value = self._kept(value)
        if isinstance(value, cst.IfExp):
            return self._tells(value.test) or any(self._is_told(arm, depth) for arm in (value.body, value.orelse))
        found = self._bindings(value, depth)
        tests = [test for each in found for test, _ in self._facts.conditions(each.site)]
        return any(map(self._tells, tests)) or any(
            each.value and self._is_told(each.value, depth + 1) for each in found
        )

    def _bindings(self, value: cst.BaseExpression, depth: int) -> list[Binding]:
        """The assignments that a name's value comes from, none where it may come from elsewhere."""
        found = self._facts.reaching.bindings(value) if isinstance(value, cst.Name) and depth < _DEPTH else []
        return found if all(each.kind is Kind.ASSIGN and not each.path for each in found) else []

    def _may_run(self, binding: Binding) -> bool:
        """Whether no test on the number of workers keeps an assignment from running where there are none."""
        return all(self._outcome(test, 0) is not (not come) for test, come in self._facts.conditions(binding.site))

    def _tells(self, test: cst.BaseExpression) -> bool:
        """Whether a test comes out one way without workers, and may come out the other way with one."""
        without = self._outcome(test, 0)
        return without is not None and self._outcome(test, 1) is not without

    def _outcome(self, test: cst.BaseExpression, count: int) -> bool | None:
        """How a test comes out for so many workers, None where that is out of sight."""
        match test:
            case cst.UnaryOperation(operator=cst.Not()):
                inner = self._outcome(test.expression, count)
                return None if inner is None else not inner
            case cst.BooleanOperation():
                sides = [self._outcome(side, count) for side in (test.left, test.right)]
                deciding = isinstance(test.operator, cst.Or)
                return deciding if deciding in sides else None if None in sides else not deciding
            case cst.Comparison(comparisons=[only]) if self._is_count(test.left):
                return _only(outcomes(only.operator, self._names.constant(only.comparator), [count]))
            case cst.Comparison(comparisons=[only]) if self._is_count(only.comparator):
                return _only(outcomes(mirrored(only.operator), self._names.constant(test.left), [count]))
        return bool(count) if self._is_count(test) else None

    def _is_count(self, value: cst.BaseExpression) -> bool:
        """Whether an expression surely is the same number of workers."""
        one, other = self._source(value), self._workers
        if isinstance(one, cst.Name) and isinstance(other, cst.Name):
            found = self._facts.reaching.bindings(one)
            return bool(found) and found == self._facts.reaching.bindings(other)
        key = "" if isinstance(one, cst.Name) else self._names.key(one)
        sets = [each for each in self._facts.tree.all(cst.AssignTarget) if self._names.key(each.target) == key]
        return bool(key) and key == self._names.key(other) and len(sets) <= (self._of_self(one) is not None)

    def _of_self(self, value: cst.BaseExpression) -> cst.ClassDef | None:
        """The class whose method reads an attribute of `self`."""
        return self._facts.classes.self_class(value.value) if isinstance(value, cst.Attribute) else None

    def _source(self, value: cst.BaseExpression) -> cst.BaseExpression:
        """The name or attribute that an attribute of `self` is a copy of, else the expression itself."""
        kept = self._kept(value)
        return kept if isinstance(kept, (cst.Name, cst.Attribute)) else value

    def _kept(self, value: cst.BaseExpression) -> cst.BaseExpression:
        """What the one assignment to an attribute of `self` gives it, else the expression itself."""
        node = self._of_self(value)
        if node is None or not isinstance(value, cst.Attribute):
            return value
        sources = self._facts.classes.attribute_sources(node, value.attr.value)
        only, path = sources[0] if len(sources) == 1 else (None, ())
        return only if only is not None and not path else value


def _only(found: set[bool]) -> bool | None:
    return next(iter(found)) if len(found) == 1 else None


def is_tested(facts: FileFacts, loader: cst.Call, workers: cst.BaseExpression | None) -> bool:
    """Whether a loader is made only where a test on the number of its workers let it."""
    key = facts.names.key(workers) if workers is not None else ""
    tests = [asked for test, _ in facts.conditions(loader) for asked in asked_by(facts, test)]
    words = [each for test in tests for each in facts.tree.within(test, cst.Name, cst.Attribute)]
    keys = [each for test in tests for each in facts.tree.within(test, cst.SimpleString)]
    named = any(key and facts.names.key(each) == key for each in words)
    return named or any(facts.names.constant(each) == "num_workers" for each in keys)
