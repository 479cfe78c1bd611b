"""What tests for equality and membership have told of an unknown: behind `kind in ("a", "b")` it is one of these, or none."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

ANY_OF = "any of"  # the key of a written list of constants


@dataclass(frozen=True, slots=True)
class Asked:
    """A test whether an unknown, by its key, is one of some constants, by theirs."""

    unknown: Hashable
    constants: frozenset[Hashable]


@dataclass(frozen=True, slots=True)
class Choices:
    """Among which constants an unknown is, if that is known, and which it is not."""

    among: frozenset[Hashable] | None = None
    without: frozenset[Hashable] = frozenset()

    @property
    def left(self) -> frozenset[Hashable] | None:
        """What it may still be."""
        return None if self.among is None else self.among - self.without

    def meets(self, other: Choices) -> bool:
        """Whether an unknown may be among these choices and among others, too."""
        if self.left is None or other.left is None:
            return (self.left is None or not self.left <= other.without) and (
                other.left is None or not other.left <= self.without
            )
        return not self.left.isdisjoint(other.left)

    def decides(self, asked: Asked) -> bool | None:
        """How a test comes out, None where it may come out both ways."""
        if self.left:
            return True if self.left <= asked.constants else None if self.left & asked.constants else False
        return False if asked.constants <= self.without else None

    def narrowed(self, asked: Asked, outcome: bool) -> Choices:
        """These choices where a test, which they did not decide, has come out so."""
        if not outcome:
            return replace(self, without=self.without | asked.constants)
        return replace(self, among=asked.constants if self.left is None else self.left & asked.constants)


def one_question(keys: Iterable[Hashable]) -> Hashable | None:
    """The key of one test for the constants of several tests, one of which is to hold: `x == 1 or x == 2` is `x in (1, 2)`."""
    asked = [asked_for_constants(plain) if not negated else None for plain, negated in map(plain_key, keys)]
    found = [each for each in asked if each is not None]
    if len(found) < len(asked) or len({each.unknown for each in found}) != 1:
        return None
    constants = frozenset.union(*(each.constants for each in found))
    return ("in", found[0].unknown, (ANY_OF, tuple(sorted(constants, key=repr))))


def asked_for_constants(key: Hashable | None) -> Asked | None:
    """Which constants a test without negations asks an unknown for; None for any other test."""
    if not (isinstance(key, tuple) and len(key) == 3 and key[0] in ("==", "in", "is")):
        return None
    symbol, left, right = key
    if symbol == "in":
        return Asked(left, frozenset(right[1])) if isinstance(right, tuple) and right[:1] == (ANY_OF,) else None
    for unknown, constant in ((left, right), (right, left)):
        if is_constant_key(constant):
            return Asked(unknown, frozenset([constant]))
    return None


def holds_draw(key: Hashable | None) -> bool:
    """Whether a value is known by a number that was drawn at random, or by what comes of one."""
    return isinstance(key, tuple) and (key[:1] == ("drawn",) or any(map(holds_draw, key)))


def is_constant_key(key: Hashable | None) -> bool:
    """Whether a key is that of a constant, written down or of a library, as `math.inf`."""
    return isinstance(key, tuple) and key[:1] == ("constant",)


def excludes(truth: bool, asked: Asked) -> bool:
    """Whether something that counts as true, or as false, is none of some constants."""
    return all(_truth_of(each) is (not truth) for each in asked.constants)


def shared_truth(constants: frozenset[Hashable]) -> bool | None:
    """How all of some constants count, by their keys; None where some count as true and others as false."""
    truths = {_truth_of(each) for each in constants}
    return truths.pop() if len(truths) == 1 else None


def _truth_of(key: Hashable) -> bool | None:
    return bool(key[2]) if isinstance(key, tuple) and len(key) == 3 and key[0] == "constant" else None


_NEGATED = {"!=": "==", "not in": "in", "is not": "is", ">=": "<", ">": "<="}


def plain_key(key: Hashable | None) -> tuple[Hashable | None, bool]:
    """A test's key without negations, and whether it was negated."""
    negated = False
    while isinstance(key, tuple) and key and (key[0] == "not" or key[0] in _NEGATED):
        key = key[1] if key[0] == "not" else (_NEGATED[key[0]], *key[1:])
        negated = not negated
    return key, negated


def holds_between(key: Hashable | None) -> bool:
    """Whether a test is true between the multiples of a counter: what is left over is, and so is `i % 8 != 0 and i != last`.

    Of several tests in one, those that ask what is left over tell.
    """
    plain, negated = plain_key(key)
    if not isinstance(plain, tuple) or not plain:
        return negated
    parts = [each for each in plain[1:] if _asks_for_rest(each)] if plain[0] in ("and", "or") else []
    every = all if plain[0] == "and" else any
    held = every(map(holds_between, parts)) if parts else plain[0] == "%"
    return held != negated


def _asks_for_rest(key: Hashable | None) -> bool:
    return isinstance(key, tuple) and (key[:1] == ("%",) or any(map(_asks_for_rest, key)))
