"""Numbers for the program's objects, so that events can speak of them, and findings on whose lines something happens."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_DEEPEST = 80  # frames looked through


def is_tensor(thing: Any) -> bool:
    """Whether an object is a tensor; asks its type only, for proxies answer for what they stand for."""
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(type(thing), torch.Tensor)


def is_module(thing: Any) -> bool:
    """Whether an object is an `nn.Module`."""
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(type(thing), torch.nn.Module)


class Numbers:
    """Numbers objects by identity, from 0. An address that is used again gets a new number."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._next = 0

    def of(self, thing: Any) -> int:
        """The number of an object, a new one if it has none yet."""
        known = self._known.get(id(thing))
        if known is not None and known[0]() is thing:
            return known[1]
        number, self._next = self._next, self._next + 1
        self._known[id(thing)] = weakref.ref(thing), number
        return number

    def living(self) -> Iterator[tuple[int, Any]]:
        """Number and object of those that still exist."""
        for reference, number in list(self._known.values()):
            thing = reference()
            if thing is not None:
                yield number, thing


OPTIMIZERS = Numbers()
PARAMETERS = Numbers()


class Lines:
    """Tells which findings' lines the program is in just now."""

    def __init__(self, session: Session) -> None:
        self._rows: dict[str, list[tuple[int, int, int]]] = {}
        for target in session.plan.targets:
            self._rows.setdefault(target.file, []).append((target.first, target.last, target.finding))
        self._files: dict[str, list[tuple[int, int, int]] | None] = {}

    def now(self) -> list[int]:
        """The findings whose lines are on the stack, innermost first."""
        found: dict[int, None] = {}
        frame = sys._getframe(1)
        for _ in range(_DEEPEST):
            name = frame.f_code.co_filename
            if name not in self._files:
                self._files[name] = self._rows.get(os.path.realpath(name))
            for first, last, finding in self._files[name] or ():
                if first <= (frame.f_lineno or 0) <= last:
                    found[finding] = None
            if frame.f_back is None:
                break
            frame = frame.f_back
        return list(found)
