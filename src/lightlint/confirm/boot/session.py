"""The recording of one process: what its meters share, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from lightlint.confirm.boot.guard import Guard
from lightlint.confirm.boot.imports import when_imported
from lightlint.confirm.boot.recorder import Recorder
from lightlint.confirm.plan import Plan

_current: Session | None = None


@dataclass
class Clock:
    """What the process has done so far."""

    steps: int = 0  # of the busiest optimizer
    batches: int = 0
    backwards: int = 0


@dataclass
class Session:
    """What meters share.

    Attributes:
        plan: what is to be watched.
        record: where events go.
        clock: steps, batches and backward passes so far.
        snapshots: what the line meter compares on entering and leaving a finding's lines: name to a function of
            the frame.
        before_update: called with an optimizer right before it changes parameters, gradients in place: behind the
            closure where it is given one. Lightning runs the user's `training_step` in a closure of its own.
        after_update: called with an optimizer right after it changed parameters.
        in_trainer: called with a hook's name, the Trainer and its module at the points of Lightning's loops.
        at_end: called once before the process ends.
        reason: how the process ended.
        is_rank: whether it joined a process group.
    """

    plan: Plan
    record: Recorder
    clock: Clock
    snapshots: dict[str, Callable[[Any], Mapping[str, Any]]] = field(default_factory=dict)
    before_update: list[Callable[[Any], None]] = field(default_factory=list)
    after_update: list[Callable[[Any], None]] = field(default_factory=list)
    in_trainer: list[Callable[[str, Any, Any], None]] = field(default_factory=list)
    at_end: list[Callable[[], None]] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    reason: str = "finished"
    is_rank: bool = False

    def guard(self, meter: str) -> Guard:
        """A guard for a meter's functions; what they cost is recorded at the end."""
        guard = Guard(meter, self.record)
        self.guards.append(guard)
        return guard

    def on_import(self, meter: str, module: str, then: Callable[[ModuleType], None]) -> None:
        """Call `then`, guarded, once a module is imported."""
        when_imported(module, self.guard(meter)(then))

    def end(self) -> None:
        """Record the end, once; what is called later finds nothing to do."""
        ending, self.at_end = self.at_end, []
        for each in ending:
            each()
        for guard in self.guards:
            if guard.seconds:
                self.record.emit("cost", meter=guard.meter, seconds=round(guard.seconds, 6))
        self.guards = []
        if self.reason:
            self.record.emit("end", reason=self.reason, steps=self.clock.steps, batches=self.clock.batches)
            self.reason = ""


def current() -> Session | None:
    """The session of this process, if it records."""
    return _current


def becomes(session: Session | None) -> None:
    """Make a session that of this process: it has one, or none."""
    global _current
    _current = session
