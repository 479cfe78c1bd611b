"""The points of a body's control-flow graph and how they are made from its statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import libcst as cst

from lightlint.facts.code.fields import backwards

Loop = cst.For | cst.While
Owner = cst.FunctionDef | cst.Module | Loop

# asked by type: `isinstance` on libcst's abstract classes is slow where it says no
_BRANCHING = {cst.BooleanOperation, cst.IfExp, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp}
_PLAIN = {cst.Assign, cst.Expr, cst.AugAssign, cst.AnnAssign, cst.Return, cst.Import, cst.ImportFrom, cst.FunctionDef}
_LEAVING = {cst.Return, cst.Raise, cst.Break, cst.Continue, cst.Expr}
_NO_RETURN = {"sys.exit", "os._exit", "os.abort", "exit", "quit"}
_SWALLOWING = {"suppress", "raises"}  # contextlib.suppress, pytest.raises: the body's exceptions end at the `with`


_MOST_COPIED = 2  # blocks of `finally` inside one another


class Condition(NamedTuple):
    """`test` came out as `outcome` when it was last evaluated; names in it may have been bound anew since."""

    test: cst.BaseExpression
    outcome: bool


@dataclass(eq=False, slots=True)
class Point:
    """Code that runs from one end to the other: `nodes` in the order of their evaluation, operands before operators."""

    nodes: list[cst.CSTNode] = field(default_factory=list)
    ways: list[tuple[Point, Condition | None]] = field(default_factory=list)
    on_error: Point | None = None

    @property
    def next_points(self) -> Iterator[Point]:
        yield from (way for way, _ in self.ways)
        if self.on_error:
            yield self.on_error


@dataclass(frozen=True, slots=True)
class Exits:
    """Where control goes on leaving the place under construction."""

    returned: Point
    raised: Point
    broken: Point | None = None
    continued: Point | None = None
    caught: bool = False  # whether any expression may raise to `raised`, not only a `raise`


class Builder:
    """Makes points from the last statement to the first: each part is given the point to go on with."""

    def __init__(self, loops: dict[Loop, list[tuple[Point, set[Point]]]]) -> None:
        self.points: list[Point] = []
        """All points made; their nodes are in reverse."""
        self.entries: dict[cst.CSTNode, list[Point]] = {}
        """Where statements and tests are entered that make no event of their own."""
        self._loops = loops
        self._open_finally = 0

    def point(self, exits: Exits, *ways: Point, nodes: Iterable[cst.CSTNode] = ()) -> Point:
        made = Point(list(nodes), [(way, None) for way in ways], exits.raised if exits.caught else None)
        self.points.append(made)
        return made

    def body(self, body: cst.BaseSuite, then: Point, exits: Exits) -> Point:
        return self.block(body.body, then, exits)

    def block(self, statements: Sequence[cst.CSTNode], then: Point, exits: Exits) -> Point:
        for statement in reversed(statements):
            then = self.statement(statement, then, exits)
            self.entries.setdefault(statement, []).append(then)
        return then

    def statement(self, node: cst.CSTNode, then: Point, exits: Exits) -> Point:
        if type(node) in _PLAIN:
            return self.plain(node, then, exits)
        match node:
            case cst.SimpleStatementLine():
                return self.block(node.body, then, exits)
            case cst.If():
                otherwise = then
                if isinstance(node.orelse, cst.If):
                    otherwise = self.block([node.orelse], then, exits)
                elif node.orelse:
                    otherwise = self.body(node.orelse.body, then, exits)
                return self.test(node.test, self.body(node.body, then, exits), otherwise, exits)
            case cst.For() | cst.While():
                return self.loop(node, then, exits)
            case cst.Try() | cst.TryStar():
                return self.attempt(node, then, exits)
            case cst.With():
                swallows = any(_called(item.item).split(".")[-1] in _SWALLOWING for item in node.items)
                if swallows:
                    left = self.point(exits, then, exits.raised)
                    then = self.body(node.body, then, replace(exits, raised=left, caught=True))
                else:
                    then = self.body(node.body, then, exits)
                for item in reversed(node.items):
                    then = self.value(item, self.point(exits, then), exits)
                return then
            case cst.Match():
                return self.match(node, then, exits)
            case cst.Assert():
                failed = self.point(exits, exits.raised)
                if node.msg:
                    failed = self.value(node.msg, failed, exits)
                if isinstance(node.test, cst.Name) and node.test.value == "False":  # what cannot be, says the program
                    return self.point(exits, failed, nodes=[node])
                return self.test(node.test, self.point(exits, then, nodes=[node]), failed, exits)
            case _:
                return self.plain(node, then, exits)

    def plain(self, node: cst.CSTNode, then: Point, exits: Exits) -> Point:
        """A statement that chooses nothing but where it leaves to."""
        return self.value(node, self.point(exits, *_after(node, then, exits)), exits)

    def loop(self, node: Loop, then: Point, exits: Exits) -> Point:
        otherwise = self.body(node.orelse.body, then, exits) if node.orelse else then
        first = len(self.points)
        head = self.point(exits, nodes=[node])
        inner = replace(exits, broken=then, continued=head)
        body = self.body(node.body, head, inner)
        if isinstance(node, cst.While):
            entry = head
            head.ways.append((self.test(node.test, body, otherwise, exits), None))
        else:
            assign = self.value(node.target, self.point(exits, body), exits)
            head.ways += [(assign, None), (otherwise, None)]
        self._loops.setdefault(node, []).append((head, set(self.points[first:])))
        if isinstance(node, cst.For):
            entry = self.value(node.iter, self.point(exits, head), exits)
        return entry

    def attempt(self, node: cst.Try | cst.TryStar, then: Point, exits: Exits) -> Point:
        outer = exits
        if node.finalbody:
            then, outer = self.finally_block(node.finalbody.body, then, exits)
        handler = outer.raised
        clauses: list[cst.ExceptHandler | cst.ExceptStarHandler] = [*node.handlers]
        for clause in reversed(clauses):
            after = self.point(outer, then, handler) if isinstance(node, cst.TryStar) else then
            caught = self.point(outer, self.body(clause.body, after, outer), nodes=[clause])
            if clause.type is None:
                handler = caught
            else:
                ways = [caught] if _called(clause.type) == "BaseException" else [caught, handler]
                handler = self.value(clause.type, self.point(outer, *ways), outer)
        otherwise = self.body(node.orelse.body, then, outer) if node.orelse else then
        inner = replace(outer, raised=handler, caught=True) if node.handlers else outer
        return self.body(node.body, otherwise, inner)

    def finally_block(self, final: cst.BaseSuite, then: Point, exits: Exits) -> tuple[Point, Exits]:
        """Where control goes on behind a block with a `finally`, and on leaving it: to copies of the `finally` block, one for
        each way on; far inside others of its kind, where the copies of copies would be too many, to one with all ways."""
        targets = dict.fromkeys([then, *filter(None, (exits.returned, exits.raised, exits.broken, exits.continued))])
        self._open_finally += 1
        if self._open_finally > _MOST_COPIED:
            copies = dict.fromkeys(targets, self.body(final, self.point(exits, *targets), exits))
        else:
            copies = {target: self.body(final, target, exits) for target in targets}
        self._open_finally -= 1
        outer = Exits(
            copies[exits.returned],
            copies[exits.raised],
            copies[exits.broken] if exits.broken else None,
            copies[exits.continued] if exits.continued else None,
            caught=True,
        )
        return copies[then], outer

    def match(self, node: cst.Match, then: Point, exits: Exits) -> Point:
        following = then
        for case in reversed(node.cases):
            body = self.body(case.body, then, exits)
            if case.guard:
                body = self.test(case.guard, body, following, exits)
            fits_all = isinstance(case.pattern, cst.MatchAs) and case.pattern.pattern is None
            chosen = self.point(exits, body, nodes=[case])
            ways = [chosen] if fits_all else [chosen, following]
            following = self.value(case.pattern, self.point(exits, *ways), exits)
        return self.value(node.subject, self.point(exits, following), exits)

    def test(self, node: cst.BaseExpression, yes: Point, no: Point, exits: Exits) -> Point:
        """Evaluate a test and branch on its outcome."""
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            entry = self.test(node.expression, no, yes, exits)
            self.entries.setdefault(node, []).append(entry)
            return entry
        if isinstance(node, cst.BooleanOperation):
            held, failed = self.point(exits), self.point(exits)
            held.ways.append((yes, Condition(node, True)))
            failed.ways.append((no, Condition(node, False)))
            entry = self.operands(node, held, failed, self.test(node.right, held, failed, exits), exits)
            self.entries.setdefault(node, []).append(entry)
            return entry
        certain = _constant(node)
        if certain is not None:
            return self.value(node, self.point(exits, yes if certain else no), exits)
        fork = self.point(exits)
        fork.ways += [(yes, Condition(node, True)), (no, Condition(node, False))]
        return self.value(node, fork, exits)

    def operands(self, node: cst.BooleanOperation, yes: Point, no: Point, right: Point, exits: Exits) -> Point:
        """Evaluate the left operand of `and` or `or`, and the right one, which starts at `right`, if it matters."""
        if isinstance(node.operator, cst.And):
            return self.test(node.left, right, no, exits)
        return self.test(node.left, yes, right, exits)

    def value(self, node: cst.CSTNode, last: Point, exits: Exits) -> Point:
        """Evaluate a node; `last` is a fresh point, which takes what is evaluated straight before it."""
        for part in backwards(node, _BRANCHING):
            last.nodes.append(part)
            if type(part) not in _BRANCHING:
                continue
            match part:
                case cst.BooleanOperation():
                    right = self.value(part.right, self.point(exits, last), exits)
                    last = self.operands(part, last, last, right, exits)
                case cst.IfExp():
                    arms = [self.value(arm, self.point(exits, last), exits) for arm in (part.body, part.orelse)]
                    last = self.test(part.test, arms[0], arms[1], exits)
                case cst.ListComp() | cst.SetComp() | cst.DictComp() | cst.GeneratorExp():
                    results = [part.key, part.value] if isinstance(part, cst.DictComp) else [part.elt]
                    last = self.comprehension(part.for_in, results, last, exits)
        return last

    def comprehension(self, node: cst.CompFor, results: list[cst.BaseExpression], then: Point, exits: Exits) -> Point:
        head = self.point(exits, nodes=[node])
        if node.inner_for_in:
            body = self.comprehension(node.inner_for_in, results, head, exits)
        else:
            body = self.point(exits, head)
            for result in reversed(results):
                body = self.value(result, body, exits)
        for condition in reversed(node.ifs):
            body = self.test(condition.test, body, head, exits)
        assign = self.value(node.target, self.point(exits, body), exits)
        head.ways += [(assign, None), (then, None)]
        return self.value(node.iter, self.point(exits, head), exits)


def _after(node: cst.CSTNode, then: Point, exits: Exits) -> list[Point]:
    """Where a simple statement leads."""
    if type(node) not in _LEAVING:
        return [then]
    match node:
        case cst.Return():
            return [exits.returned]
        case cst.Raise():
            return [exits.raised]
        case cst.Break():
            return [exits.broken or exits.raised]
        case cst.Continue():
            return [exits.continued or exits.raised]
        case cst.Expr(value=cst.Call() as call) if _called(call) in _NO_RETURN:
            return [exits.raised]
        case _:
            return [then]


def _called(node: cst.CSTNode) -> str:
    """The dotted name an expression is or calls, as written."""
    if type(node) is cst.Call:
        return _called(node.func)
    if type(node) is cst.Attribute:
        return f"{_called(node.value)}.{node.attr.value}"
    return node.value if type(node) is cst.Name else ""


def _constant(node: cst.BaseExpression) -> bool | None:
    """The outcome of a test that is always the same: `while True`, `while 1`, `if TYPE_CHECKING`."""
    name = node.attr if isinstance(node, cst.Attribute) else node
    if isinstance(name, cst.Name) and name.value == "TYPE_CHECKING":
        return False
    if isinstance(node, cst.Name) and node.value in {"True", "False"}:
        return node.value == "True"
    return node.evaluated_value != 0 if isinstance(node, cst.Integer) else None
