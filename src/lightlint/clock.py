"""What a run spends its time on: stages of the pipeline, and rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter
from typing import ParamSpec, TypeVar

Spent = tuple[tuple[str, float], ...]  # seconds by the name of a stage or rule
STAGES = ("gate", "imports", "sketch", "parse", "tree")
P = ParamSpec("P")
T = TypeVar("T")


class Clock:
    """Seconds by name. A fact that several rules ask for is made once, in the time of the first."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Add what the block takes."""
        start = perf_counter()
        try:
            yield
        finally:
            self._seconds[name] += perf_counter() - start

    def timed(self, name: str, function: Callable[P, T]) -> Callable[P, T]:
        """A function with each of its calls added."""
        seconds = self._seconds

        def call(*arguments: P.args, **named: P.kwargs) -> T:
            start = perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                seconds[name] += perf_counter() - start

        return call

    @property
    def spent(self) -> Spent:
        """All so far."""
        return tuple(self._seconds.items())


def stage(clock: Clock | None, name: str) -> AbstractContextManager[None]:
    """Around what belongs to a stage, where somebody wants to know."""
    return clock.of(name) if clock else nullcontext()


def total(parts: Iterator[Spent]) -> Spent:
    """Times of several files as one."""
    seconds: dict[str, float] = defaultdict(float)
    for spent in parts:
        for name, more in spent:
            seconds[name] += more
    return tuple(seconds.items())
