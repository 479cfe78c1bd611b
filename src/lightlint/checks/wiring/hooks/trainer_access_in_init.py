from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Misused, Unattached
from lightlint.models.registry import is_lightning
from lightlint.values.core import Class, NotYet, Value
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_NEEDS_TRAINER = {"optimizers", "lr_schedulers", "print", "all_gather", "clip_gradients"}


class TrainerAccessInInit(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        raises = self.facts.lightning.surely_at_least("2.0")
        for asked in entry.of(Unattached):
            if raises and asked.name == "trainer" and is_lightning(asked.holder) and not self.is_versioned(asked):
                yield Fault.at(asked, "`self.trainer` in `__init__`, where no Trainer is attached yet")
        for used in entry.of(Misused):
            name = used.value.name if isinstance(used.value, NotYet) else ""
            told = raises and name == "trainer" and isinstance(used.value, NotYet) and is_lightning(used.value.holder)
            if name in ("trainer", "logger") and not told and not self.is_versioned(used):
                yield Fault.at(used, f"`self.{name}` is None in `__init__`, where no Trainer is attached yet")
        for name in sorted(_NEEDS_TRAINER):
            for event in entry.calls.get(f".{name}", ()):
                module = event.receiver
                making = [
                    each for each in event.where.calls if each.function.name == "__init__" and each.function.owner
                ]
                own = module is not None and any(each.function.owner in _classes(module) for each in making)
                if module is not None and is_lightning(module) and own and not self.is_versioned(event):
                    yield Fault.of(event, f"`self.{name}()` in `__init__`, where no Trainer is attached yet")


def _classes(value: Instance) -> list[Value]:
    return value.cls.lineage() if isinstance(value.cls, Class) else []
