"""In which turns of a loop its tests let a node run: `(i + 1) % n == 0` against `i % n`, for any size of the window."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.tree import Loop

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 6
_SIZES = (2, 3, 4, 5)
_PERIOD = 240  # of all those sizes, and of most that stand in a text as a number
_FAR = 1_000 * _PERIOD  # so that a test for the first turns alone tells nothing of all
_ASKING = {"builtins.hasattr", "builtins.isinstance", "builtins.getattr", "builtins.callable"}
_MATHS: dict[type[cst.CSTNode], Callable[[int, int], int]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.Modulo: operator.mod,
    cst.FloorDivide: operator.floordiv,
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
}

Tests = Iterable[tuple[cst.BaseExpression, bool]]


@dataclass(frozen=True, slots=True)
class _Turn:
    """One turn of a loop: what its counter is, and the size of the window of that name."""

    number: int
    size: int
    window: str


@dataclass(frozen=True, slots=True)
class _Term:
    """An expression as a function of the turn, which gives None where it hangs on more.

    `counters` and `sizes` name what it counts with and what it divides by, `names` all else that it reads;
    `is_fixed` says that it is the same in every turn.
    """

    value: Callable[[_Turn], int | None]
    counters: frozenset[str] = frozenset()
    sizes: frozenset[str] = frozenset()
    name: str = ""
    is_fixed: bool = True


class Turns:
    """The turns of one loop."""

    def __init__(self, facts: FileFacts, loop: Loop) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._loop = loop

    def always_together(self, tests: Tests, others: Tests) -> bool:
        """Whether some tests let the loop come to a place only in turns in which others surely hold, too.

        Both have to ask for one counter of the loop. Tests before the loop, and those that are the same in every turn, are
        taken to hold.
        """
        ours = [self._told(*each) for each in tests if self._is_in_body(each[0])]
        theirs = [self._told(*each) for each in others if self._is_in_body(each[0])]
        counters = frozenset[str]().union(*(each.counters for each in (*ours, *theirs)))
        sizes = frozenset[str]().union(*(each.sizes for each in (*ours, *theirs)))
        counted = any(each.counters for each in ours) and any(each.counters for each in theirs)
        if len(counters) != 1 or len(sizes) > 1 or not counted:
            return False
        window = next(iter(sizes), "")
        return all(_together(ours, theirs, size, window) for size in _SIZES)

    def _told(self, test: cst.BaseExpression, outcome: bool) -> _Term:
        term = self._term(test, 0)
        return term if outcome else _with(term, lambda turn: _denied(term.value(turn)))

    def _term(self, expression: cst.BaseExpression, depth: int) -> _Term:
        match expression:
            case cst.Integer():
                number = expression.evaluated_value
                return _Term(lambda _turn: number)
            case cst.Comparison(comparisons=[only]):
                return self._maths(expression.left, only.operator, only.comparator, depth)
            case cst.BinaryOperation():
                return self._maths(expression.left, expression.operator, expression.right, depth)
            case cst.BooleanOperation():
                is_and = isinstance(expression.operator, cst.And)
                left, right = self._term(expression.left, depth), self._term(expression.right, depth)
                return _joined(left, right, lambda turn: _both(left.value(turn), right.value(turn), is_and=is_and))
            case cst.UnaryOperation(operator=cst.Not()):
                inner = self._term(expression.expression, depth)
                return _with(inner, lambda turn: _denied(inner.value(turn)))
            case cst.Call(args=[only]) if self._names.call(expression) in {"builtins.bool", "builtins.int"}:
                return self._term(only.value, depth)
            case cst.Name() | cst.Attribute() | cst.Subscript():
                return self._variable(expression, depth)
        return _Term(_unknown, is_fixed=self._is_fixed(expression))

    def _maths(self, one: cst.BaseExpression, how: cst.CSTNode, other: cst.BaseExpression, depth: int) -> _Term:
        left, right = self._term(one, depth), self._term(other, depth)
        apply = _MATHS.get(type(how))
        if apply is None:
            return _joined(left, right, _unknown)
        if isinstance(how, cst.Modulo) and right.name:
            right = _Term(right.value, sizes=frozenset([right.name]))

        def value(turn: _Turn) -> int | None:
            a, b = left.value(turn), right.value(turn)
            if a is None or b is None or (b == 0 and isinstance(how, (cst.Modulo, cst.FloorDivide))):
                return None
            return int(apply(a, b))

        return _joined(left, right, value)

    def _variable(self, expression: cst.Name | cst.Attribute | cst.Subscript, depth: int) -> _Term:
        key = self._names.key(expression)
        if not key:
            return _Term(_unknown, is_fixed=False)
        value = self._names.constant(expression)
        if isinstance(value, int):
            return _Term(lambda _turn: value)
        if self._is_drawn(expression):
            return _Term(lambda turn: turn.number, counters=frozenset([key]), is_fixed=False)
        shift = self._counted(expression, key)
        if shift is not None:
            return _Term(lambda turn: turn.number + shift, counters=frozenset([key]), is_fixed=False)
        made = self._made(expression) if depth < _DEPTH else None
        if made is not None:
            return self._term(made, depth + 1)
        if not self._is_fixed(expression):
            return _Term(_unknown, is_fixed=False)
        return _Term(lambda turn: turn.size if turn.window == key else None, name=key)

    def _is_drawn(self, expression: cst.BaseExpression) -> bool:
        """Whether a name is what the loop counts with: bound by its head alone."""
        if not isinstance(expression, cst.Name) or not isinstance(self._loop, cst.For):
            return False
        inside = [each for each in self._names.bindings.lookup(expression) if self._is_inside(each.site)]
        return (
            len(inside) == 1 and inside[0].kind is Kind.LOOP and self._tree.contains(self._loop.target, inside[0].site)
        )

    def _counted(self, expression: cst.BaseExpression, key: str) -> int | None:
        """How far a counter that every turn raises by one is, where an expression reads it; None for any other."""
        changes = self._raised(key)
        if len(changes) != 1 or self._is_assigned(key) or self._is_moved(expression):
            return None
        (change,) = changes
        held = [test for test, _ in self._facts.conditions(change.target) if self._is_in_body(test)]
        by_one = isinstance(change.operator, cst.AddAssign) and self._names.constant(change.value) == 1
        if not by_one or held or self._tree.loops(change)[:1] != [self._loop]:
            return None
        flow = self._facts.flow(self._tree.owner(self._loop))
        return int(flow.reaches_in_same_iteration(self._loop, change.target, [expression]))

    def _made(self, expression: cst.BaseExpression) -> cst.BaseExpression | None:
        """What a name was surely bound to, where an expression reads it."""
        found = self._facts.reaching.bindings(expression) if isinstance(expression, cst.Name) else []
        return found[0].value if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None

    def _is_fixed(self, expression: cst.CSTNode) -> bool:
        """Whether an expression surely is the same in every turn."""
        if any(self._names.call(each) not in _ASKING for each in self._tree.within(expression, cst.Call)):
            return False
        bound = [
            site.site for name in self._tree.within(expression, cst.Name) for site in self._names.bindings.lookup(name)
        ]
        if any(map(self._is_inside, bound)):
            return False
        read = self._tree.within(expression, cst.Attribute, cst.Subscript)
        keys = [self._names.key(each) for each in read]
        changed = any(self._is_assigned(key) or self._raised(key) for key in keys)
        return not changed and not any(map(self._is_moved, read))

    def _raised(self, key: str) -> list[cst.AugAssign]:
        found = self._tree.within(self._loop, cst.AugAssign)
        return [each for each in found if self._names.key(each.target) == key]

    def _is_assigned(self, key: str) -> bool:
        targets = [each.target for each in self._tree.within(self._loop, cst.AssignTarget, cst.AnnAssign)]
        return not key or any(self._names.key(each) == key for each in targets)

    def _is_moved(self, expression: cst.CSTNode) -> bool:
        """Whether another method than the one that makes an object may change an attribute of it, outside of the loop."""
        node = self._facts.classes.self_class(expression.value) if isinstance(expression, cst.Attribute) else None
        if node is None:
            return False
        key = self._names.key(expression)
        changes = self._tree.within(node, cst.AugAssign, cst.AssignTarget)
        outside = [each for each in changes if self._names.key(each.target) == key and not self._is_inside(each)]
        owners = [self._tree.function(each) for each in outside]
        return any(each is not None and each.name.value != "__init__" for each in owners)

    def _is_in_body(self, test: cst.CSTNode) -> bool:
        """Whether a test is asked in the turns: not before the loop, and not by its head."""
        return self._tree.contains(self._loop.body, test)

    def _is_inside(self, node: cst.CSTNode) -> bool:
        return self._tree.contains(self._loop, node)


def _together(ours: list[_Term], theirs: list[_Term], size: int, window: str) -> bool:
    """Whether theirs hold in all turns, of which there are some, in which ours do."""
    numbers = (*range(_PERIOD), *range(_FAR, _FAR + _PERIOD))
    all_turns = [_Turn(each, size, window) for each in numbers]
    turns = [turn for turn in all_turns if all(_may_hold(term, turn) for term in ours)]
    return bool(turns) and all(_holds(term, turn) for term in theirs for turn in turns)


def _holds(term: _Term, turn: _Turn) -> bool:
    value = term.value(turn)
    return bool(value) if value is not None else term.is_fixed


def _may_hold(term: _Term, turn: _Turn) -> bool:
    """As `_holds`, for a test that may keep some more turns away: one that asks for no counter."""
    value = term.value(turn)
    return bool(value) if value is not None else not term.counters


def _unknown(_turn: _Turn) -> None:
    return None


def _denied(value: int | None) -> int | None:
    return None if value is None else int(not value)


def _both(one: int | None, other: int | None, *, is_and: bool) -> int | None:
    """`and` and `or`, where one side may be unknown and the other decide."""
    sides = [None if each is None else bool(each) for each in (one, other)]
    if (not is_and) in sides:
        return int(not is_and)
    return None if None in sides else int(is_and)


def _with(term: _Term, value: Callable[[_Turn], int | None]) -> _Term:
    return _Term(value, term.counters, term.sizes, is_fixed=term.is_fixed)


def _joined(one: _Term, other: _Term, value: Callable[[_Turn], int | None]) -> _Term:
    return _Term(
        value, one.counters | other.counters, one.sizes | other.sizes, is_fixed=one.is_fixed and other.is_fixed
    )
