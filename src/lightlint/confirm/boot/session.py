"""The recording of one process: what it is, which meters run in it, and how it ended."""

from __future__ import annotations

import atexit
import builtins
import faulthandler
import importlib
import os
import platform
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from lightlint.confirm.boot import exits, lightning
from lightlint.confirm.boot.guard import Guard
from lightlint.confirm.boot.imports import when_imported
from lightlint.confirm.boot.recorder import Recorder
from lightlint.confirm.plan import NEVER, Plan
from lightlint.confirm.records import SCHEMA

STACKS = ".stacks"  # suffix of the file a process writes its threads' stacks into when the launcher asks
_current: Session | None = None
PACKAGES = ("torch", "lightning", "pytorch_lightning", "transformers", "accelerate", "torchvision", "torchmetrics")


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


def start(plan: Plan) -> Session:
    """Begin to record this process."""
    clock = Clock()
    record = Recorder(plan.records, lambda: clock.steps)
    session = Session(plan, record, clock)
    _tell_start(session, forked=False)
    os.register_at_fork(after_in_child=lambda: _tell_start(session, forked=True))
    atexit.register(session.end)
    exits.install(session)
    _answer_signals(plan)
    for package in PACKAGES:
        session.on_import("packages", package, lambda module: _tell_version(session, module))
    global _current  # a process has one session
    _current = session
    if plan.limits != NEVER:
        lightning.install(session)
    if plan.notebook:
        builtins.display = lambda *_things, **_options: None  # type: ignore[attr-defined]  # IPython's, which is not there
    if plan.seed is not None or plan.deterministic:
        from lightlint.confirm.boot import seed

        seed.install(session)
    install(session)
    return session


def stop(session: Session) -> None:
    """Stop recording before the process ends; patches stay, and do nothing any more."""
    global _current
    guards = session.guards
    session.end()
    for guard in guards:
        guard.failed = True
    session.record.close()
    sys.settrace(None)
    _current = None


def current() -> Session | None:
    """The session of this process, if it records."""
    return _current


def install(session: Session) -> None:
    """Switch on the meters of the plan; the steps and the cut belong to every run."""
    for name in dict.fromkeys(("steps", *session.plan.meters)):
        importlib.import_module(name if "." in name else f"lightlint.confirm.meters.{name}").install(session)


def _tell_start(session: Session, *, forked: bool) -> None:
    rank = os.environ.get("RANK", os.environ.get("LOCAL_RANK"))
    command = [*getattr(sys, "orig_argv", sys.argv)]
    session.is_rank = False
    session.record.emit(
        "start",
        schema=SCHEMA,
        host=socket.gethostname(),
        pid=os.getpid(),
        parent=os.getppid(),
        forked=forked,
        spawned=any("multiprocessing" in word for word in command[1:4]),
        agent=any(word.endswith(("torchrun", "torch.distributed.run", "torch.distributed.launch")) for word in command),
        rank=int(rank) if rank and rank.isdigit() else None,
        argv=command,
        python=platform.python_version(),
    )


def _tell_version(session: Session, module: ModuleType) -> None:
    session.record.emit("package", name=module.__name__, version=str(getattr(module, "__version__", "")))


def _answer_signals(plan: Plan) -> None:
    """Write the stacks of all threads when the launcher asks: no timers here, they deadlock forked children.

    Not SIGUSR1: Lightning's requeueing on SLURM uses it.
    """
    if not hasattr(signal, "SIGRTMIN"):
        return

    def register() -> None:
        path = Path(plan.records) / f"{socket.gethostname()}-{os.getpid()}{STACKS}"
        faulthandler.register(signal.SIGRTMIN + 3, file=path.open("w"), all_threads=True)

    register()
    os.register_at_fork(after_in_child=register)
