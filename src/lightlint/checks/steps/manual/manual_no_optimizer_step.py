from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, CalledUnknown, Configured, Stepped
from lightlint.explore.questions.queries import in_sight
from lightlint.facts.lightning.hooks import TRAINING_STEP
from lightlint.facts.project.mentions import occurs
from lightlint.values.core import Class, Function

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_MAY_STEP = re.compile(r"step|update|optim", re.IGNORECASE)  # of something out of sight
_ASKED = r"(?<!self)\.optimizers\s*\("  # of a module, by a callback of another file


class ManualNoOptimizerStep(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules that optimize by hand and go backward, where no rehearsal comes to a step."""
        by_hand = [event for event in entry.of(Configured) if event.automatic is False]
        if not by_hand or not entry.turned or not all(path.finished for path in entry.paths):
            return
        trains = any(event.where.hook == TRAINING_STEP for event in entry.of(Backward))
        may_step = any(_MAY_STEP.search(getattr(event.callee, "hint", "")) for event in entry.of(CalledUnknown))
        if not trains or may_step or any(True for _ in entry.of(Stepped)):
            return
        for event in by_hand:
            cls = event.module.cls
            step = cls.find(TRAINING_STEP) if isinstance(cls, Class) else None
            own = any(isinstance(each.cls, Class) and each.cls.find("step") is not None for each in event.optimizers)
            known = event.optimizers and not own and in_sight([event.module, *event.optimizers])
            if isinstance(step, Function) and known and not self._is_known_elsewhere():
                message = (
                    f"`{event.module.name}` optimizes by hand, but nothing in it steps an optimizer: no weight changes"
                )
                yield Fault(step.name_site(), message)

    def _is_known_elsewhere(self) -> bool:
        """Whether code around the class may step its optimizers: a callback, a subclass of another file."""
        called = occurs(self.facts.project, "optimizers", _ASKED, Path(self.facts.source.filename).absolute())
        return called or bool(self.facts.project.users(self.facts.path, TRAINING_STEP))
