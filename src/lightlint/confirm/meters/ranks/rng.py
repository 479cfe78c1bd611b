"""States of the random generators, and what a line left in the program's names: do the ranks draw the same?"""

from __future__ import annotations

import inspect
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.meters.digest import digest

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MOST = 24  # names looked at
_GENERATORS = {"Generator", "RandomState", "Random"}


def install(session: Session) -> None:
    """Compare generators and names around the findings' lines; look at generators that loader workers hold copies of."""
    session.snapshots["rng"] = lambda _frame: states()
    session.snapshots["values"] = values
    session.on_import("rng", "torch.utils.data._utils.worker", lambda module: _Workers(session).watch(module))


def states() -> dict[str, str]:
    """A checksum of the state of each global generator."""
    import random

    found = {"random": f"{zlib.crc32(repr(random.getstate()).encode()):08x}"}
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        found["numpy"] = f"{zlib.crc32(repr(numpy.random.get_state()[1:]).encode()):08x}" + _tail(numpy)
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_rng_state"):
        found["torch"] = digest(torch.get_rng_state())
        if torch.cuda.is_initialized():  # `is_available` would start the driver
            found["cuda"] = digest(torch.cuda.get_rng_state())
    return found


def _tail(numpy: Any) -> str:
    """The words themselves: `repr` leaves out the middle of a long array."""
    return f"{zlib.crc32(numpy.random.get_state()[1].tobytes()):08x}"


def values(frame: FrameType) -> dict[str, str]:
    """A checksum of each tensor, array and subset that the frame names, and of those that its `self` holds."""
    found: dict[str, str] = {}
    for name, value in _named(frame):
        if len(found) == _MOST:
            break
        content = _content(value)
        if content is not None:
            found[name] = digest(content)
    return found


def _named(frame: FrameType) -> Iterator[tuple[str, Any]]:
    yield from list(frame.f_locals.items())
    this = frame.f_locals.get("self")
    if this is not None:
        yield from ((f"self.{name}", value) for name, value in list(getattr(this, "__dict__", {}).items()))


def _content(value: Any) -> Any:
    """What of a value makes up data: None for what is none."""
    kind = type(value)
    if kind.__name__ in {"Tensor", "ndarray"}:
        return value
    if kind.__name__ == "Subset":
        return list(value.indices)
    if kind.__name__ == "TensorDataset":
        return list(value.tensors)
    if kind in {list, tuple} and 0 < len(value) <= 8:
        parts = [_content(each) for each in value]
        return None if any(part is None for part in parts) else parts
    return None


class _Workers:
    """What the workers of data loaders get a copy of."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tell = session.guard("rng")(self._told)

    def watch(self, module: Any) -> None:
        loop = module._worker_loop
        place = list(inspect.signature(loop).parameters).index("init_fn") - 2  # the worker's number follows it

        def _worker_loop(dataset_kind: Any, dataset: Any, *rest: Any) -> None:
            arguments = list(rest)
            initialise, group = arguments[place], str(arguments[place - 1])  # the seed that the workers of a pass share

            def init_fn(worker: int) -> None:
                if initialise is not None:
                    initialise(worker)
                self._tell("begin", worker, dataset, group, initialise)

            arguments[place] = init_fn
            loop(dataset_kind, dataset, *arguments)
            self._tell("end", arguments[place + 1], dataset, group, initialise)

        # a spawned worker finds it by this name, where its own recording has put the like of it
        _worker_loop.__module__, _worker_loop.__qualname__ = loop.__module__, loop.__qualname__
        module._worker_loop = _worker_loop

    def _told(self, when: str, worker: int, dataset: Any, group: str, initialise: Any) -> None:
        found = {name: _state(each) for name, each in _generators(dataset, "dataset", 3)}
        self._session.record.emit(
            "worker",
            when=when,
            worker=worker,
            group=group,
            initialised=initialise is not None,
            generators=found,
            states=states(),
            source=_source(type(dataset)),
        )


def _source(kind: type) -> list[Any] | None:
    """File, first and last row of a class."""
    try:
        lines, first = inspect.getsourcelines(kind)
        return [os.path.realpath(inspect.getfile(kind)), first, first + len(lines) - 1]
    except (OSError, TypeError):
        return None


def _generators(holder: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    """The random generators that an object holds, directly or through others."""
    held: Mapping[str, Any] = getattr(holder, "__dict__", {})
    for key, value in list(held.items())[:_MOST]:
        kind = type(value)
        if kind.__name__ in _GENERATORS and kind.__module__.partition(".")[0] in {"numpy", "torch", "random"}:
            yield f"{name}.{key}", value
        elif depth and hasattr(value, "__dict__") and not callable(value):
            yield from _generators(value, f"{name}.{key}", depth - 1)


def _state(generator: Any) -> str:
    if hasattr(generator, "bit_generator"):
        state: Any = generator.bit_generator.state
    elif hasattr(generator, "getstate"):
        state = generator.getstate()
    else:
        state = generator.get_state()
    if hasattr(state, "detach"):
        return digest(state)
    return f"{zlib.crc32(repr(state).encode()):08x}{zlib.crc32(_words(state)):08x}"


def _words(state: Any) -> bytes:
    """The long array within a numpy state."""
    inner = state.get("state", {}) if isinstance(state, dict) else {}
    key = inner.get("key") if isinstance(inner, dict) else None
    if key is None and isinstance(state, tuple) and len(state) > 1 and hasattr(state[1], "tobytes"):
        key = state[1]
    return key.tobytes() if key is not None else b""
