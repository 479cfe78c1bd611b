"""Which statements and expressions can run after which, and which tests must have come out how before they run.

A `Flow` covers one body: a function's, a module's, or a loop with all its iterations. Bodies of functions, lambdas
and classes inside it run at other times and are no part of it. Its points are stretches of code without a choice;
`and`, `or`, conditional expressions and comprehensions are branches like any other, so `ready and opt.zero_grad()`
is no certain `zero_grad`. The queries take the nodes of interest (usually calls), in any number:

    flow.reaches(backward, [step], avoiding=zero_grads)
    flow.reaches_in_later_iteration(loop, backward, [backward], avoiding=zero_grads)

Not followed: generators that are never consumed, and exceptions outside of `try` unless raised in plain sight.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from heapq import heappop, heappush

import libcst as cst

from lightlint.facts.code.graph import Builder, Condition, Exits, Loop, Owner, Point

__all__ = ["Condition", "Flow", "Loop", "Owner", "Point"]


class Flow:
    """The control-flow graph of a body. Nodes it does not hold reach nothing and are reached by nothing."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.end = Point()
        """Where the body ends, by `return` or at its last statement."""
        self.failure = Point()
        """Where an exception leaves the body."""
        self._loops: dict[Loop, list[tuple[Point, set[Point]]]] = {}
        build = Builder(self._loops)
        exits = Exits(returned=self.end, raised=self.failure)
        match owner:
            case cst.FunctionDef():
                entry = build.body(owner.body, self.end, exits)
            case cst.Module():
                entry = build.block(owner.body, self.end, exits)
            case _:
                entry = build.statement(owner, self.end, exits)
        self.start = Point(ways=[(entry, None)])
        self.points = self._in_order()
        self._next = {point: tuple(point.next_points) for point in self.points}
        self._places: dict[int, list[tuple[Point, int]]] = {}  # by `id`, since libcst hashes nodes in Python
        for point in build.points:
            point.nodes.reverse()
        for point in self.points:
            for position, node in enumerate(point.nodes):
                self._places.setdefault(id(node), []).append((point, position))
        reachable = set(self.points)
        for node, entries in build.entries.items():
            if starts := [(point, -1) for point in entries if point in reachable]:
                self._places.setdefault(id(node), starts)

    def release(self) -> None:
        """Cut the circles that loops make of the points; the flow tells nothing any more."""
        self._next.clear()
        for point in self.points:
            point.ways.clear()
            point.on_error = None

    def point_of(self, node: cst.CSTNode) -> Point | None:
        """The point that evaluates an expression or enters a statement (the head of a loop), None outside the flow."""
        places = self._places.get(id(node))
        return places[0][0] if places else None

    def reaches(
        self,
        start: cst.CSTNode | Point,
        goals: Iterable[cst.CSTNode | Point],
        avoiding: Iterable[cst.CSTNode | Point] = (),
        within: Loop | None = None,
    ) -> bool:
        """Whether some way from behind `start` comes to a goal before it comes to a node of `avoiding`.

        `within` leaves out the ways that leave a loop, and keeps those around it.
        """
        inside = self.loop_points(within) if within else None
        return self._search(self.places(start), goals, avoiding, inside, closed=frozenset())

    def reaches_in_same_iteration(
        self,
        loop: Loop,
        start: cst.CSTNode | Point,
        goals: Iterable[cst.CSTNode | Point],
        avoiding: Iterable[cst.CSTNode | Point] = (),
    ) -> bool:
        """As `reaches`, by ways that neither leave the loop nor come to its head again."""
        return self._search(self.places(start), goals, avoiding, self.loop_points(loop), closed=self._heads(loop))

    def reaches_in_later_iteration(
        self,
        loop: Loop,
        start: cst.CSTNode | Point,
        goals: Iterable[cst.CSTNode | Point],
        avoiding: Iterable[cst.CSTNode | Point] = (),
    ) -> bool:
        """As `reaches`, by ways that stay in the loop and pass its head at least once."""
        inside, heads, avoiding = self.loop_points(loop), self._heads(loop), list(avoiding)
        if not self._search(self.places(start), heads, avoiding, inside, closed=frozenset()):
            return False
        return self._search([(head, -2) for head in heads], goals, avoiding, inside, closed=frozenset())

    def always_before(self, node: cst.CSTNode, events: Iterable[cst.CSTNode]) -> bool:
        """Whether every way from the body's start to `node` passes an event."""
        if id(node) not in self._places:
            return False
        return not self.reaches(self.start, [node], avoiding=events)

    def conditions(self, node: cst.CSTNode) -> tuple[Condition, ...]:
        """The tests that must have come out one way for `node` to run, in the order of their evaluation.

        They come from enclosing `if`, `while` and guards, from `return`, `raise`, `continue` or `break` before the
        node, from `assert`, conditional expressions, `and`, `or` and comprehensions. `not` is resolved, `and` and `or`
        are given whole and, where that follows, in parts.
        """
        known = [self._known[point] for point, _ in self._places.get(id(node), [])]
        if not known:
            return ()
        tests = self._tests
        shared = sorted(frozenset.intersection(*known), key=lambda each: tests[each[0]][0])
        return tuple(Condition(tests[test][1], outcome) for test, outcome in shared)

    def loop_points(self, loop: Loop) -> frozenset[Point]:
        """The points of a loop's head and body, without what a `for` iterates over and without `else`."""
        return frozenset[Point]().union(*(points for _, points in self._loops.get(loop, [])))

    def _heads(self, loop: Loop) -> frozenset[Point]:
        return frozenset(head for head, _ in self._loops.get(loop, []))

    def places(self, place: cst.CSTNode | Point) -> list[tuple[Point, int]]:
        """The points that evaluate a node, each with its position there; behind all of a point's, for a point."""
        return [(place, len(place.nodes))] if isinstance(place, Point) else self._places.get(id(place), [])

    def following(self, point: Point) -> tuple[Point, ...]:
        """The points that control can come to from a point."""
        return self._next[point]

    def _search(
        self,
        starts: Iterable[tuple[Point, int]],
        goals: Iterable[cst.CSTNode | Point],
        avoiding: Iterable[cst.CSTNode | Point],
        inside: frozenset[Point] | None,
        closed: frozenset[Point],
    ) -> bool:
        """Look for a way from behind `starts` to a goal; it stays `inside` and enters no `closed` point."""
        events: dict[Point, list[tuple[int, bool]]] = {}
        for places, is_goal in ((goals, True), (avoiding, False)):
            for place in places:
                found = [(place, -1)] if isinstance(place, Point) else self._places.get(id(place), [])
                for point, position in found:
                    events.setdefault(point, []).append((position, is_goal))
        pending, seen = list(starts), set[Point]()
        while pending:
            point, position = pending.pop()
            first = self._first(events[point], position) if point in events else None
            if first and first[1]:
                return True
            # An exception may come before the event that ends this way.
            following = self._next[point] if first is None else filter(None, [point.on_error])
            for other in following:
                if other not in seen and other not in closed and (inside is None or other in inside):
                    seen.add(other)
                    pending.append((other, -2))
        return False

    def _first(self, events: Iterable[tuple[int, bool]], position: int) -> tuple[int, bool] | None:
        """The event of a point that comes next behind a position, a goal before what is to be avoided."""
        ahead = (event for event in events if event[0] > position)
        return min(ahead, key=lambda event: (event[0], not event[1]), default=None)

    def _in_order(self) -> list[Point]:
        """The points control can come to, each after those that lead to it (loops aside)."""
        finished: list[Point] = []
        seen = {self.start}
        stack = [(self.start, self.start.next_points)]
        while stack:
            point, following = stack[-1]
            other = next((other for other in following if other not in seen), None)
            if other is None:
                stack.pop()
                finished.append(point)
            else:
                seen.add(other)
                stack.append((other, other.next_points))
        return finished[::-1]

    @cached_property
    def _tests(self) -> dict[int, tuple[int, cst.BaseExpression]]:
        """The tests by `id`, numbered in the order of their evaluation."""
        conditions = (condition for point in self.points for _, condition in point.ways if condition)
        found = {id(condition.test): condition.test for condition in conditions}
        return {key: (number, test) for number, (key, test) in enumerate(found.items())}

    @cached_property
    def _known(self) -> dict[Point, frozenset[tuple[int, bool]]]:
        """The tests, by `id`, and outcomes on which all ways to a point agree on entering it (a forward must-analysis)."""
        known: dict[Point, frozenset[tuple[int, bool]]] = {self.start: frozenset()}
        numbers = {point: number for number, point in enumerate(self._in_order())}
        points = list(numbers)
        pending = [0]  # of points, the next in order first: all that leads to one, loops aside, is known before
        while pending:
            point = points[heappop(pending)]
            asked = {
                (id(condition.test), outcome) for _, condition in point.ways if condition for outcome in (True, False)
            }
            kept = known[point] - asked if asked else known[point]
            ways = [*point.ways, (point.on_error, None)] if point.on_error else point.ways
            for other, condition in ways:
                facts = kept | {(id(condition.test), condition.outcome)} if condition else kept
                before = known.get(other)
                both = facts if before is None else before & facts
                if both != before:
                    known[other] = both
                    heappush(pending, numbers[other])
        return known
