"""The part that runs inside the user's process: lets its own training loop run on fake tensors and counts their bytes.

The program starts as ever and draws its first batch for real. From then on its modules, optimizers and batches hold no
memory, its loop runs a few steps of different batch sizes, and the process ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from lightlint.forecast.breakdown import RESULT, VARIABLE, Kind, Simulation, Step
from lightlint.forecast.simulation.watch import watch_loaders, watch_trainers

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MOST_DRAWS = 512  # batches without an optimizer step, before the program counts as one that never steps
_MOST_MODULES = 1000  # told of a step
_MOST_CHECKS = 5  # steps to find the largest batch for a budget
_LARGER = 64  # times the batch, where twice of it takes no more: the peak is that of the optimizer's step
_OTHERS = 8  # batches in which every optimizer should have stepped
_OURS = str(Path(__file__).parents[2])
_STANDARD = str(Path(os.__file__).parent)


@dataclass(frozen=True, slots=True)
class Phase:
    """Steps to simulate: how many times the program's batch, or of which size; under bfloat16 or as the program does."""

    label: str
    times: float = 1
    size: int | None = None
    bf16: bool = False


def install(session: Session) -> None:
    """Wait for the first batch, or for the first step of a program without loader."""
    asked = json.loads(os.environ.get(VARIABLE, "{}"))
    simulation = _Simulation(Path(session.plan.records), asked)
    session.on_import("forecast", "torch", lambda torch: simulation.watch(torch))
    session.on_import("forecast", "torch.utils.data.dataloader", lambda module: watch_loaders(module, simulation))
    for package in ("pytorch_lightning", "lightning.pytorch"):
        session.on_import("forecast", f"{package}.trainer.trainer", watch_trainers)
    shown = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        simulation.failed(error)
        if not simulation.running and not asked.get(
            "quiet"
        ):  # the program's own failure; else the report's line says it
            shown(kind, error, trace)

    sys.excepthook = hook


class _Simulation:
    """The phases, what was counted so far, and when to end."""

    def __init__(self, folder: Path, asked: Mapping[str, Any]) -> None:
        self._file = folder / RESULT
        self._phases = [Phase("first"), Phase("step"), Phase("double", times=2), Phase("bf16", bf16=True)]
        self._budgets: Mapping[str, int] = asked.get("budgets", {})
        self._at = -1
        self._steps: list[Step] = []
        self._stepped: set[int] = set()  # by an optimizer's groups, which Lightning's wrapper shares
        self._draws = 0
        self._size: int | None = None
        self._gradients: dict[int, int] = {}
        self._began = 0.0
        self.draws_from_loader = False
        self._on_cpu: Any = None

    @property
    def running(self) -> bool:
        return self._at >= 0

    def watch(self, torch: ModuleType) -> None:
        """Go on without CUDA, and count steps."""
        from torch.optim.optimizer import register_optimizer_step_post_hook

        from lightlint.forecast.simulation.device import pretend

        self._on_cpu = pretend()
        register_optimizer_step_post_hook(lambda optimizer, _args, _kwargs: self._took_step(optimizer))

    def begin(self, batch: Any) -> Any:
        """Make everything fake; the first simulated batch."""

        from lightlint.forecast.simulation.faking import Faker, fake_mode, samples, tensors, watch_modules
        from lightlint.forecast.simulation.tracker import Tracker

        self._tensors = tensors
        self._real, self._size = batch, samples(batch)
        mode = fake_mode()
        self._faker = Faker(mode)
        modules = self._faker.modules()
        self._optimizers = self._faker.optimizers()
        self.tracker = tracker = Tracker()
        kinds = ((Kind.PARAMETERS, "parameters"), (Kind.BUFFERS, "buffers"))
        for kind, name in kinds:
            for module in modules:
                for tensor in getattr(module, name)(recurse=False):
                    tracker.see(tensor, kind)
        for parameter in {id(each): each for module in modules for each in module.parameters(recurse=False)}.values():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(self._accumulated)
        inside: list[str] = []

        def enter(name: str) -> None:
            inside.append(name)
            tracker.module = name

        def leave() -> None:
            inside.pop()
            tracker.module = inside[-1] if inside else ""

        roots = [module for module in modules if not any(module in other.children() for other in modules)]
        watch_modules(roots, enter, leave)
        for optimizer in self._optimizers:
            tracker.rename(self._tensors(list(optimizer.state.values())), Kind.OPTIMIZER)
        mode.__enter__()
        tracker.__enter__()
        if self._on_cpu is not None:
            self._on_cpu.simulating = True
        self._began = time.perf_counter()
        return self._next_phase()

    def draw(self) -> Any:
        """The next simulated batch: of this phase while it has not stepped, else of the next."""
        self._draws += 1
        waiting = len(self._stepped) < len(self._stepping()) and self._draws < _OTHERS
        if self._stepped and not waiting:
            return self._next_phase()
        if self._draws > _MOST_DRAWS:
            self._end(f"no optimizer step in {_MOST_DRAWS} batches")
        return self._batch()

    def failed(self, error: BaseException) -> None:
        """The program raised: what was counted so far holds."""
        if not self._file.exists():
            error = _first(error)
            where = _user_line(error)
            self._write(
                f"{_message(error)}{f' at {where}' if where else ''}", device=_device() if self.running else None
            )

    def _stepping(self) -> list[Any]:
        return [
            each for each in self._optimizers if any(p.requires_grad for g in each.param_groups for p in g["params"])
        ]

    def _took_step(self, optimizer: Any) -> None:
        if not self.running:
            if not self.draws_from_loader:  # the loop draws from no loader: go on from here, with the batch it has
                self.begin(None)
            return
        self._stepped.add(id(optimizer.param_groups))
        self.tracker.rename(self._tensors(list(optimizer.state.values())), Kind.OPTIMIZER)
        held = [parameter.grad for group in optimizer.param_groups for parameter in group["params"]]
        self._gradients[id(optimizer.param_groups)] = sum(
            grad.numel() * grad.element_size() for grad in held if grad is not None
        )
        if self._real is None:
            self._next_phase()

    def _accumulated(self, parameter: Any) -> None:
        if parameter.grad is not None:
            self.tracker.rename([parameter.grad], Kind.GRADIENTS)

    def _next_phase(self) -> Any:
        if self.running:
            self._close()
        self._at += 1
        if self._at == len(self._phases) and not self._add_checks():
            self._end("")
        phase = self._phases[self._at]
        if phase.bf16:
            import torch

            if torch.is_autocast_enabled("cpu"):
                return self._next_phase()
            torch.autocast("cpu", torch.bfloat16).__enter__()
        self._stepped, self._draws = set(), 0
        self.tracker.start()
        return self._batch()

    def _batch(self) -> Any:
        if self._real is None:
            return None
        phase = self._phases[self._at]
        size = phase.size or (int(self._size * phase.times) if self._size and phase.times != 1 else None)
        batch = self._faker.batch(self._real, size)
        for tensor in self._tensors(batch):
            self.tracker.see(tensor, Kind.BATCH)
        return batch

    def _close(self) -> None:
        """Record the phase that ends here."""
        phase, tracker = self._phases[self._at], self.tracker
        size = phase.size or (int(self._size * phase.times) if self._size else None)
        modules = dict(list(tracker.modules().items())[:_MOST_MODULES])
        self._steps.append(
            Step(phase.label, size, tracker.peak, tracker.kinds(), modules, sum(self._gradients.values()))
        )
        if phase.bf16:
            import torch

            torch.set_autocast_enabled("cpu", False)

    def _add_checks(self) -> bool:
        """Steps at the largest batch that should fit each budget, again where one was not near. False where all are."""
        from lightlint.forecast.fit import is_near, largest

        known = Simulation(tuple(self._steps))
        for name, budget in self._budgets.items():
            label = f"check {name}"
            before, size = known.step(label), largest(known, budget)
            rounds = sum(phase.label == label for phase in self._phases)
            settled = before is not None and (is_near(before, budget) or before.batch == size)
            if size and not settled and rounds < _MOST_CHECKS:
                self._phases.append(Phase(label, size=size))
            elif size is None and self._size and not any(phase.label == "larger" for phase in self._phases):
                self._phases.append(Phase("larger", times=_LARGER))
        return len(self._phases) > self._at

    def _end(self, problem: str) -> None:
        self._write(problem)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # nothing of the program can go on with what is fake

    def _write(self, problem: str, device: str | None = None) -> None:
        seconds = time.perf_counter() - self._began if self._began else 0.0
        simulation = Simulation(tuple(self._steps), problem, round(seconds, 2), device)
        self._file.write_text(json.dumps(asdict(simulation)), encoding="utf-8")


def _device() -> str:
    """The GPU that a step can be measured on, empty if there is none."""
    import torch

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else ""


def _first(error: BaseException) -> BaseException:
    """The error that the others came from."""
    while (earlier := error.__cause__ or error.__context__) is not None:
        error = earlier
    return error


def _message(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        return f"ModuleNotFoundError: torch is not installed for {sys.executable}"
    message = (str(error).strip().splitlines() or [""])[0][:300]
    return f"{type(error).__name__}{f': {message}' if message else ''}"


def _user_line(error: BaseException) -> str:
    """The innermost line of the user's code that an error came through."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename and not frame.filename.startswith((_OURS, _STANDARD, "<frozen"))
    ]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
