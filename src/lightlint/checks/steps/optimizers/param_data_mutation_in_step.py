from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, WeightSet
from lightlint.explore.questions.queries import in_sight

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ParamDataMutationInStep(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Weights that are changed while a loss computed with them waits for its backward pass."""
        for path in entry.paths:
            changed: list[WeightSet] = []
            for event in path.events:
                if isinstance(event, WeightSet):
                    changed.append(event)
                elif isinstance(event, Backward):
                    used = set(event.parameters)
                    for each in changed:
                        before = event.graph and all(graph.made < each.time for graph in event.graph)
                        if before and each.parameter in used and in_sight([each.parameter]):
                            yield Fault(
                                each.site, "a weight changes between forward and backward pass, behind autograd's back"
                            )
                    changed = []
