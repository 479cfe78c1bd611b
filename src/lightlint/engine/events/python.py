"""What plain Python does"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from lightlint.engine.arguments import Arguments
from lightlint.engine.events.base import Event
from lightlint.engine.frames import Loop
from lightlint.values.core import Mapping, Sequence, Site, Value
from lightlint.values.training import Instance


@dataclass(eq=False)
class UnboundRead(Event):
    """A name was read to which no statement that ran has given a value: Python raises there."""

    name: str


@dataclass(eq=False)
class Written(Event):
    """A file was written, by a function or method with a `name`; by `torch.save` a `value`."""

    name: str
    path: Value | None
    value: Value | None = None


@dataclass(eq=False)
class DirectoryMade(Event):
    """A directory was made where none may be."""

    name: str
    path: Value | None


@dataclass(eq=False)
class Appended(Event):
    """A value went into a container."""

    container: Sequence
    value: Value
    consumed_before: bool


@dataclass(eq=False)
class Emptied(Event):
    """A container was emptied."""

    container: Sequence | Mapping


@dataclass(eq=False)
class Looped(Event):
    """A loop was entered."""

    loop: Loop


@dataclass(eq=False)
class RangeBegun(Event):
    """Something is to be counted from a number on: by a range, or in `rows` of a `while` that asks for it."""

    first: Value
    rows: frozenset[int] = frozenset()


@dataclass(eq=False)
class Left(Event):
    """A loop or function was left early: `break`, `continue`, `return` behind a test."""

    word: str

    @property
    def leaves_loop(self) -> bool:
        """Whether a loop of the function itself is left for good."""
        around = self.where.calls[-1].turns if self.where.calls else 0
        return self.word in ("break", "return") and len(self.where.turns) > around


@dataclass(eq=False)
class Called(Event):
    """A call of what a library gives: a function or class by canonical path, or the method `path` of `receiver`."""

    path: str
    given: Arguments
    receiver: Instance | None = None

    @property
    def name(self) -> str:
        """Its name without the path."""
        return self.path.rpartition(".")[2]

    def argument(self, name: str, position: int | None = None) -> Value | None:
        """An argument by name or position, None where none is given in sight."""
        return self.given.get(-1 if position is None else position, name)

    def said_at(self, keyword: str) -> Site:
        """Where a keyword is written: in the call, or in what stands in the same file and was handed to it."""
        site = self.given.said.get(keyword, self.site)
        return site if site[0] == self.site[0] else self.site


@dataclass(eq=False)
class EnvironmentSet(Event):
    """An environment variable of this process was given a value; the name is None where it is out of sight."""

    name: str | None


@dataclass(eq=False)
class AttributeRead(Event):
    """A worker read an attribute."""

    object: Instance
    name: str


@dataclass(eq=False)
class Misused(Event):
    """Something was asked of a value that no such value has, where nothing catches what Python raises then.

    `asked`: the name of an attribute, or "[]", "iter", "len" or "unpack", the last into `width` names.
    """

    value: Value
    asked: str
    width: int = 0


@dataclass(eq=False)
class CalledUnknown(Event):
    """A call into code out of sight took values along."""

    callee: Value
    values: list[Value]


@dataclass(eq=False)
class Passed(Event):
    """Something unknown was compared with a number that about any passes: above what is 0 at most, below what is huge.

    A `written` one stands in the test itself, as in `step > 0`.
    """

    bar: Value
    written: bool = False


@dataclass(eq=False)
class DrawDecided(Event):
    """A test came out as a number that was drawn at random says, by the `key` of the test."""

    key: Hashable
