from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import WrapperAsked
from lightlint.explore.questions.groups import with_groups
from lightlint.explore.questions.queries import holds
from lightlint.values.core import Class, Value
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class ParallelWrapperAttribute(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """What is asked of a wrapper that only the module inside has."""
        asked = ((path, event) for path in with_groups(entry) for event in path.of(WrapperAsked))
        for path, event in asked:
            if _asked_for_kind(path, event.wrapper):
                continue
            inner: Value | None = event.wrapper
            while isinstance(inner, Module) and inner.wraps is not None:
                inner = inner.wraps
            if isinstance(inner, Module) and isinstance(inner.cls, Class) and _is_made(event.wrapper, inner):
                shown = "DDP" if event.wrapper.wrapper == "ddp" else "DataParallel"
                if inner.cls.find(event.name) is not None or event.name in inner.attributes:
                    message = f"this raises AttributeError: {shown} does not pass on `{event.name}` of `{inner.name}`"
                    yield Fault.at(event, message)


def _asked_for_kind(path: Path, wrapper: Module) -> bool:
    """Whether a test that may come out otherwise asks what the wrapper is or has."""
    keys = (wrapper.key, wrapper.cls.key)
    return any(holds(test, key) for test in path.machine.answers for key in keys)


def _is_made(wrapper: Module, inner: Module) -> bool:
    """Whether a wrapper is all that is in sight, and came to be: DDP refuses a module that requires no gradients."""
    refused = wrapper.wrapper == "ddp" and not wrapper.reduced and bool([*inner.parameters()])
    return not (wrapper.escaped or refused)
