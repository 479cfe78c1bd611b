"""Imports the packages that code needs, as its first lines would, and says which of them fail and in whose code.

Runs in a process of its own: `python -P -m lightlint.environment.describing.importing NAME ...`. Only what is built on torch is
tried: that is where one package that does not go with another breaks a third.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from types import TracebackType

from lightlint.environment.describing.probe import pathless

_BUILT_ON_TORCH = re.compile("torch", re.IGNORECASE)
_MACHINERY = {"importlib", "__main__", "lightlint", "runpy", "typing", "functools", "contextlib"}
_BELOW = {"torch", "numpy"}  # where an error is raised of which who called them is the cause
_LONGEST = 300  # seconds


@dataclass(frozen=True, slots=True)
class Failure:
    """An import that fails: of which module, in which package's code, and with what error."""

    module: str
    culprit: str
    error: str


def failures(modules: Iterable[str]) -> tuple[Failure, ...]:
    """What fails of some imports on this machine; nothing where it cannot be told, as where the process itself dies."""
    words = [sys.executable, "-P", "-m", __name__, *modules]
    try:
        ran = subprocess.run(words, capture_output=True, text=True, timeout=_LONGEST, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return ()
    last = (ran.stdout.strip().splitlines() or [""])[-1]
    return tuple(Failure(*each) for each in json.loads(last)) if ran.returncode == 0 and last.startswith("[") else ()


def tried(modules: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The module, the culprit and the error of each import that fails; modules that are not there are left to others."""
    for module in modules:
        if not _is_built_on_torch(module):
            continue
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            needed = (error.name or "").partition(".")[0]
            if needed and needed != module:
                yield module, needed, pathless(error)
        except Exception as error:
            yield module, _culprit(module, error), pathless(_first(error))


def _is_built_on_torch(module: str) -> bool:
    needs = (" ".join(metadata.requires(owner) or ()) for owner in _owners().get(module, ()))
    return any(map(_BUILT_ON_TORCH.search, (module, *needs)))


@cache
def _owners() -> dict[str, list[str]]:
    """The distributions by the modules that they bring."""
    return dict(metadata.packages_distributions())


def _first(error: BaseException) -> Exception:
    """The error that an error came of."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if isinstance(cause, Exception) and not isinstance(cause, (AttributeError, KeyError)):
        return _first(cause)
    return error if isinstance(error, Exception) else RuntimeError(str(error))


def _culprit(module: str, error: BaseException) -> str:
    """The package whose code was running: the innermost one but for those that all use."""
    first = _first(error)
    packages = [*_packages(error.__traceback__), *(_packages(first.__traceback__) if first is not error else ())]
    return next((each for each in reversed(packages) if each not in _BELOW), packages[-1] if packages else module)


def _packages(trace: TracebackType | None) -> Iterator[str]:
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__") or "").partition(".")[0]
        if name and name not in _MACHINERY and name not in sys.stdlib_module_names:
            yield name
        trace = trace.tb_next


if __name__ == "__main__":
    sys.stdout.write(f"\n{json.dumps(list(tried(sys.argv[1:])))}\n")
