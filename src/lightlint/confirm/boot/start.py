"""Beginning and ending the recording of one process: what is watched of every program, and which meters run."""

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
from pathlib import Path
from types import ModuleType

from lightlint.confirm.boot import exits
from lightlint.confirm.boot.frameworks import lightning, seed
from lightlint.confirm.boot.recorder import Recorder
from lightlint.confirm.boot.session import Clock, Session, becomes
from lightlint.confirm.meters import module_of
from lightlint.confirm.plan import NEVER, Plan
from lightlint.confirm.records import SCHEMA

STACKS = ".stacks"  # suffix of the file a process writes its threads' stacks into when the launcher asks
PACKAGES = ("torch", "lightning", "pytorch_lightning", "transformers", "accelerate", "torchvision", "torchmetrics")


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
    becomes(session)
    if plan.limits != NEVER:
        lightning.install(session)
    if plan.notebook:
        builtins.display = lambda *_things, **_options: None  # type: ignore[attr-defined]  # IPython's, which is not there
    if plan.seed is not None or plan.deterministic:
        seed.install(session)
    install(session)
    return session


def stop(session: Session) -> None:
    """Stop recording before the process ends; patches stay, and do nothing any more."""
    guards = session.guards
    session.end()
    for guard in guards:
        guard.failed = True
    session.record.close()
    sys.settrace(None)
    becomes(None)


def install(session: Session) -> None:
    """Switch on the meters of the plan; the steps and the cut belong to every run."""
    for name in dict.fromkeys(("steps", *session.plan.meters)):
        importlib.import_module(name if "." in name else module_of(name)).install(session)


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
