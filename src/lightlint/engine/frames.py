"""Scopes, loops and calls: where a rehearsal stands."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from lightlint.values.core import Function, Site, Traits, Value

TURNS = 2  # of a loop whose number of turns is unknown


class Reset(NamedTuple):
    """A name that was given a constant: in a scope, or of an object."""

    names: dict[str, Value]
    name: str
    value: Value


@dataclass(eq=False, slots=True)
class Loop:
    """A loop being rehearsed.

    `kind`: "batch" (over a loader), "count" (a range or a bounded while), "elements" (of something unknown), "known" (of a
    known container), "while". `bound`: how many turns it takes, None for unknown. `known`: every turn is rehearsed as it is.
    """

    node: ast.AST | None
    site: Site
    kind: str
    bound: Value | None
    over: Value | None
    known: bool
    turn: int = 0
    driven: bool = False  # a framework's loop, not the program's
    made: int = 0  # when it was entered
    split: bool = False  # its test hangs on what was set behind a test of the rank
    once: Value | None = None  # the iterator that it goes on with, which does not start again
    graded: bool = False  # a backward pass ran in it, in no loop inside
    begun: int = 0  # when the present turn was
    ended: int = 0  # when it was left
    under: int = 0  # how many tests stood open where it was entered
    reset: list[Reset] = field(default_factory=list)  # what a test for one in several turns set
    rest: bool = False  # its third turn begins a window that nothing fills
    taken: list[tuple[Hashable, Value]] = field(default_factory=list)  # out of containers by a turn's number or element
    again: bool = False  # a third turn is to show whether what the second made of the first goes on to grow

    @property
    def fills_window(self) -> bool:
        """Whether the present turn is the one in several of which tests on a multiple of a counter are true."""
        return self.turn > 1 and not self.begins_window

    @property
    def begins_window(self) -> bool:
        """Whether the present turn begins a window that nothing fills."""
        return self.rest and self.turn > TURNS


class Turn(NamedTuple):
    """In which turn of a loop something happened."""

    loop: Loop
    number: int


class Condition(NamedTuple):
    """A test that came out one way before something happened."""

    key: Hashable | None
    outcome: bool
    site: Site
    traits: Traits
    known: bool
    depth: int  # how many calls were open


class Call(NamedTuple):
    """A function of the program being run, and the place that called it."""

    function: Function
    site: Site
    turns: int  # how many loops were open at the call


@dataclass(eq=False, slots=True)
class Iteration:
    """How something is gone over: `pull(n)` gives its n-th element, None where there is none."""

    pull: Callable[[int], Value | None]
    kind: str
    turns: int
    known: bool = False
    bound: Value | None = None
    over: Value | None = None
    close: Callable[[], None] = field(default=lambda: None)
    once: Value | None = None  # the iterator behind it that does not start again
    everything: list[Value] | None = None  # all elements, where they are few: a comprehension takes each
