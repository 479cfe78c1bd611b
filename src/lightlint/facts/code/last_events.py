"""Which of some events can be the last one before a place: one forward pass over a flow answers for all places."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from heapq import heapify, heappop, heappush
from operator import or_

import libcst as cst

from lightlint.facts.code.flow import Flow
from lightlint.facts.code.graph import Point


class LastEvents:
    """The events of one flow, each of which stands until control comes to the next (a forward may-analysis).

    A set of events is a number, with a bit for each by its place among them.
    """

    def __init__(self, flow: Flow, events: Sequence[cst.CSTNode | Point]) -> None:
        self._flow = flow
        self._made: dict[Point, list[tuple[int, int]]] = {}
        for number, event in enumerate(events):
            for point, position in flow.places(event):
                self._made.setdefault(point, []).append((position, 1 << number))
        self._entering = self._flow_through()

    def before(self, node: cst.CSTNode) -> list[int]:
        """The numbers of the events that can be the last one before a node."""
        found = 0
        for point, position in self._flow.places(node):
            found |= self._at(point, position)
        return [number for number in range(found.bit_length()) if found >> number & 1]

    def _at(self, point: Point, position: int) -> int:
        made = [each for each in self._made.get(point, ()) if each[0] < position]
        return _last(made) or self._entering.get(point, 0)

    def _flow_through(self) -> dict[Point, int]:
        """What stands where control enters each point."""
        points, entering = self._flow.points, dict[Point, int]()
        order = {point: number for number, point in enumerate(points)}
        pending = [order[point] for point in self._made]
        heapify(pending)
        waiting = set(pending)
        while pending:
            waiting.discard(number := heappop(pending))
            point = points[number]
            made, held = self._made.get(point, []), entering.get(point, 0)
            leaving = _last(made) or held
            # an exception may come before each of a point's events, and behind it
            raising = reduce(or_, (bit for _, bit in made), held)
            for other in self._flow.following(point):
                before = entering.get(other, 0)
                after = before | (raising if other is point.on_error else leaving)
                if after != before:
                    entering[other] = after
                    if order[other] not in waiting:
                        waiting.add(order[other])
                        heappush(pending, order[other])
        return entering


def _last(made: Sequence[tuple[int, int]]) -> int:
    """The events, of some of one point, that no other one follows."""
    last = max((position for position, _ in made), default=0)
    return reduce(or_, (bit for position, bit in made if position == last), 0)
