"""Where and when something happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from lightlint.engine.frames import Call, Condition, Turn
from lightlint.values.core import Site
from lightlint.values.training import Instance, Module


class Where(NamedTuple):
    """Where and when: place, clock, open loops, tests that let it happen, calls, phase, grad mode, inside a DDP forward.

    `module`: the one whose forward pass it happens in, the innermost; `training`: in which mode that is then.
    `autocast`: the innermost that is open. `awaited`: a test waits for it to raise.
    """

    site: Site
    time: int
    turns: tuple[Turn, ...]
    conditions: tuple[Condition, ...]
    calls: tuple[Call, ...]
    phase: str
    grad: bool
    inside_ddp: bool
    hook: str = ""  # of Lightning, that runs
    module: Module | None = None
    training: bool | None = None
    autocast: Instance | None = None
    awaited: bool = False

    @property
    def places(self) -> tuple[Site, ...]:
        """The place, and those of the calls that led there."""
        return (self.site, *(call.site for call in self.calls))

    def within(self, kind: str) -> bool:
        """Whether a loop of a kind is open."""
        return any(turn.loop.kind == kind for turn in self.turns)

    def in_loop(self, kind: str) -> Site:
        """The place in the body of the innermost loop of a kind: the event's, or that of the call there that led to it."""
        depths = [depth for depth, turn in enumerate(self.turns) if turn.loop.kind == kind]
        return next((call.site for call in self.calls if depths and call.turns > depths[-1]), self.site)

    def same_turn(self, other: Where) -> bool:
        """Whether the same turns of the same loops are open."""
        return self.turns == other.turns

    def depends_on(self, trait: str) -> bool:
        """Whether a test on such a number let it happen."""
        return any(trait in condition.traits for condition in self.conditions)

    def depends_on_unknown(self, trait: str) -> bool:
        """Whether a test on such a number that may come out otherwise let it happen."""
        return any(trait in condition.traits and not condition.known for condition in self.conditions)

    def depends_inside_on_unknown(self, trait: str) -> bool:
        """The same of the tests in the function itself, not in those that called it."""
        tests = (condition for condition in self.conditions if condition.depth >= len(self.calls))
        return any(trait in condition.traits and not condition.known for condition in tests)

    def behind(self, trait: str) -> Site:
        """The place in the function of the last test on such a number: the event's, or that of the call that led to it."""
        depths = [condition.depth for condition in self.conditions if trait in condition.traits]
        return self.calls[depths[-1]].site if depths and depths[-1] < len(self.calls) else self.site


@dataclass(eq=False)
class Event:
    """Base of all events."""

    where: Where

    @property
    def site(self) -> Site:
        """The place."""
        return self.where.site

    @property
    def time(self) -> int:
        """The clock."""
        return self.where.time

    def said_at(self, _keyword: str) -> Site:
        """The place where one of its arguments is written."""
        return self.site


E = TypeVar("E", bound=Event)
