from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Stepped
from lightlint.explore.questions.queries import in_sight
from lightlint.values.core import Cut

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


def _reused(earlier: list[Backward], again: Backward, step: Stepped) -> Cut | None:
    """Where the result was detached that both passes hang on, the later one for the optimizer that made it."""
    own = set(step.parameters)
    if again.loss is None or not own & set(again.parameters) or not in_sight([step.optimizer, again.loss]):
        return None
    for event in earlier:
        if event.loss is not None and event.graph & again.graph and not own & set(event.parameters):
            shared = [cut for cut in event.loss.cuts & again.loss.cuts if cut.how == "detach" and cut.parameters & own]
            if shared:
                return shared[0]
    return None


class DetachedScoreReused(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes that go again over a critic's answer on detached pictures, for an optimizer of who made these."""
        for path in entry.paths:
            earlier: list[Backward] = []
            pending: Backward | None = None
            for event in path.events:
                if isinstance(event, Backward):
                    pending = event
                elif isinstance(event, Stepped) and pending is not None:
                    cut = _reused(earlier, pending, event)
                    if cut is not None:
                        message = "reuses what was computed from a detached result, before its optimizer stepped: it gives the one that steps next no gradient"
                        yield Fault.at(pending, message, cut.site)
                    earlier.append(pending)
                    pending = None
