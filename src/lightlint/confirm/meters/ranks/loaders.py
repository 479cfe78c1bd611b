"""What data loaders draw: sample indices, batches, how long the step waits for them. Ends a raw loop's passes early."""

from __future__ import annotations

import contextlib
import copy
import itertools
import sys
import time
import weakref
from collections.abc import Iterator
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.cut import cut
from lightlint.confirm.boot.frameworks.fitting import fitting
from lightlint.confirm.boot.guard import quiet
from lightlint.confirm.meters.digest import digest
from lightlint.confirm.meters.frames import Place, places

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

MOST_INDICES = 20_000
_LONGEST = 64  # batches of a pass that trains without stepping, before it is ended


def install(session: Session) -> None:
    """Watch every loader: the patch sees the final one, after Lightning made it anew."""
    session.on_import("loaders", "torch.utils.data.dataloader", lambda module: _Loaders(session).watch(module))


class _Loaders:
    """The loaders of the process and their passes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._numbers: dict[int, int] = {}
        self._passes: dict[int, int] = {}
        self._trained: dict[int, int] = {}
        self._made: dict[int, list[Place]] = {}  # by data set: Lightning makes a loader of the same one anew
        guard = session.guard("loaders")
        self._note = guard(self._noted)
        self._tell_pass = guard(self._pass)
        self.tell_batch = guard(self._batch)
        self.tell_left = guard(self._abandoned)

    def watch(self, module: ModuleType) -> None:
        loader_class = module.DataLoader
        iterate, construct = loader_class.__iter__, loader_class.__init__
        loaders = self

        @wraps(construct)
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:
            construct(loader, *args, **kwargs)
            loaders._note(loader)

        def __iter__(loader: Any) -> Iterator[Any]:
            if loaders.over(loader):
                cut(loaders._session)
            loaders._tell_pass(loader)
            return _Drawing(iterate(loader), loaders, loader)

        loader_class.__init__ = __init__
        loader_class.__iter__ = __iter__

    def number(self, loader: Any) -> int:
        return self._numbers.setdefault(id(loader), len(self._numbers))

    def over(self, loader: Any) -> bool:
        """Whether a raw loop begins one pass more than the limit over a loader that it trained on."""
        return not fitting() and self._trained.get(id(loader), 0) >= self._session.plan.limits.epochs

    def pass_of(self, loader: Any) -> int:
        return self._passes.get(id(loader), 0)

    def ended(self, loader: Any, batches: int, steps: int, *, was_cut: bool) -> None:
        """A pass is over; `steps` optimizer steps were taken in it."""
        if steps:
            self._trained[id(loader)] = self._trained.get(id(loader), 0) + 1
        self._session.record.emit(
            "pass-end", loader=self.number(loader), number=self.pass_of(loader), batches=batches, cut=was_cut
        )

    def _abandoned(self, loader: Any, number: int, batches: int, steps: int) -> None:
        """The program left a pass. As long as one that is cut it counts as one: ranks that were cut there are as far."""
        if fitting() or self._session.reason == "cut":  # Lightning's loops end by their own limits
            return
        if steps >= self._session.plan.limits.batches:
            self._trained[id(loader)] = self._trained.get(id(loader), 0) + 1
        self._session.record.emit(
            "pass-left",
            loader=self.number(loader),
            number=number,
            batches=batches,
            steps=steps,
            places=places(sys._getframe(2)),
        )

    def enough(self, drawn: int, steps: int, backwards: int) -> bool:
        """Whether a raw loop's pass is long enough, after so many batches, steps and backward passes in it."""
        most = self._session.plan.limits.batches
        if fitting() or not _imported_optimizers():
            return False
        if steps or not backwards:
            return steps >= most or (not steps and drawn >= most)
        return drawn >= max(_LONGEST, most)

    @property
    def session(self) -> Session:
        return self._session

    def _noted(self, loader: Any) -> None:
        """Remember which of the user's lines made a loader for this data set."""
        key = id(loader.dataset)
        known = self._made.setdefault(key, [])
        known += [place for place in places(sys._getframe(2)) if place not in known]
        with contextlib.suppress(TypeError):  # a list cannot be referred to weakly
            weakref.finalize(loader.dataset, self._made.pop, key, None).atexit = False

    def _pass(self, loader: Any) -> None:
        known = id(loader) in self._numbers
        number = self.number(loader)
        self._passes[id(loader)] = self._passes.get(id(loader), 0) + 1
        if not known:
            made = self._made.get(id(loader.dataset), [])
            self._session.record.emit("loader", loader=number, places=made, **_described(loader))
        indices = _indices(loader)
        self._session.record.emit(
            "pass", loader=number, number=self.pass_of(loader), indices=indices, places=places(sys._getframe(2))
        )

    def _batch(self, loader: Any, number: int, batch: Any, wait: float, told: float) -> None:
        self._session.record.emit(
            "batch",
            loader=self.number(loader),
            number=number,
            wait=round(wait, 6),
            told=round(told, 6),
            digest=digest(batch),
            **{"pass": self.pass_of(loader)},
        )


class _Drawing:
    """An iterator over a loader that records each batch; what else the program asks of it is the original's."""

    def __init__(self, inner: Any, loaders: _Loaders, loader: Any) -> None:
        self._inner = inner
        self._loaders = loaders
        self._loader = loader
        self._drawn = 0
        self._told = 0.0  # seconds that telling of the batch before took
        self._open = True
        self._number = loaders.pass_of(loader)
        clock = loaders.session.clock
        self._steps, self._backwards = clock.steps, clock.backwards

    def __iter__(self) -> _Drawing:
        return self

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __del__(self) -> None:
        """The loop that held it lets go: by `break`, `return` or an error, in the line that the program is in."""
        if self._open and self._drawn:
            self._open = False
            steps = self._loaders.session.clock.steps - self._steps
            self._loaders.tell_left(self._loader, self._number, self._drawn, steps)

    def __next__(self) -> Any:
        clock = self._loaders.session.clock
        steps = clock.steps - self._steps
        if self._open and self._drawn and self._loaders.enough(self._drawn, steps, clock.backwards - self._backwards):
            self._end(steps, was_cut=True)
            raise StopIteration
        began = time.perf_counter()
        try:
            batch = next(self._inner)
        except StopIteration:
            self._end(steps, was_cut=False)
            raise
        self._drawn += 1
        clock.batches += 1
        drawn = time.perf_counter()
        self._loaders.tell_batch(self._loader, self._drawn, batch, drawn - began, self._told)
        self._told = time.perf_counter() - drawn
        return batch

    def _end(self, steps: int, *, was_cut: bool) -> None:
        if self._open:
            self._open = False
            self._loaders.ended(self._loader, self._drawn, steps, was_cut=was_cut)


def _imported_optimizers() -> bool:
    return "torch.optim" in sys.modules


def _described(loader: Any) -> dict[str, Any]:
    return {
        "length": _length(loader),
        "batch_size": loader.batch_size,
        "workers": loader.num_workers,
        "sampler": type(loader.sampler).__name__,
        "shuffle": getattr(loader.sampler, "shuffle", type(loader.sampler).__name__ == "RandomSampler"),
        "batch_sampler": type(loader.batch_sampler).__name__,
        "dataset": type(loader.dataset).__name__,
        "dataset_length": _length(loader.dataset),
        "iterable": type(loader.sampler).__name__ == "_InfiniteConstantSampler",
    }


def _length(sized: Any) -> int | None:
    try:
        return len(sized)
    except (TypeError, NotImplementedError):
        return None


def _indices(loader: Any) -> list[int] | None:
    """The samples of the coming pass, drawn from copies so that the program's random numbers stay what they were."""
    import torch

    sampler = loader.sampler
    if type(sampler).__name__ == "_InfiniteConstantSampler" or (_length(sampler) or 0) > 50 * MOST_INDICES:
        return None
    with quiet(), _same_randomness(torch, sampler):
        try:
            drawn = list(itertools.islice(iter(_copied(sampler)), MOST_INDICES))
        except Exception:  # a sampler of the user's may draw from anything
            return None
    return drawn if all(isinstance(index, int) for index in drawn) else None


def _copied(sampler: Any) -> Any:
    """The sampler with a generator of its own; one that keeps a position in itself is copied whole, data set apart."""
    twin = copy.copy(sampler)
    generator = getattr(sampler, "generator", None)
    if generator is not None and hasattr(generator, "get_state"):
        twin.generator = type(generator)(device=generator.device)
        twin.generator.set_state(generator.get_state())
    return twin


class _same_randomness:  # noqa: N801  # reads as a function
    """Puts back the state of torch's, Python's and numpy's global generators."""

    def __init__(self, torch: Any, _sampler: Any) -> None:
        self._torch = torch

    def __enter__(self) -> None:
        import random

        numpy = sys.modules.get("numpy")
        self._states = self._torch.get_rng_state(), random.getstate(), numpy and numpy.random.get_state()

    def __exit__(self, *_exception: object) -> None:
        import random

        state, python, numpy = self._states
        self._torch.set_rng_state(state)
        random.setstate(python)
        if numpy is not None:
            sys.modules["numpy"].random.set_state(numpy)
