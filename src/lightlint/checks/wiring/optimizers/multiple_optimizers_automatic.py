from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured
from lightlint.values.core import Class, Function

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class MultipleOptimizersAutomatic(Check):
    def stands(self) -> bool:
        return not self.facts.configured.is_free

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        if self.facts.lightning.may_be_below("2.0"):
            return
        for event in entry.of(Configured):
            several = event.automatic and len(event.optimizers) > 1
            step = event.module.cls.find("training_step") if isinstance(event.module.cls, Class) else None
            old = isinstance(step, Function) and "optimizer_idx" in {each.arg for each in step.node.args.args}
            if several and event.returned_at and isinstance(step, Function) and not old:
                start, end = f"{len(event.optimizers)} optimizers", "in automatic optimization: Lightning 2 raises"
                configure = (
                    event.module.cls.find("configure_optimizers") if isinstance(event.module.cls, Class) else None
                )
                base = configure.owner if isinstance(configure, Function) else None
                if isinstance(event.module.cls, Class) and base is not None and base.file != event.module.cls.file:
                    yield Fault(event.module.cls.name_site(), f"{start} from `{base.name}` {end}")
                else:
                    yield Fault(event.returned_at, f"{start} {end}")
