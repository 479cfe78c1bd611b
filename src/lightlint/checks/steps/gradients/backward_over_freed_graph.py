from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward
from lightlint.explore.questions.queries import in_sight, over_old_sum
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class BackwardOverFreedGraph(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """A loss whose graph holds what an earlier backward pass has freed."""
        for path in entry.paths:
            for event in path.of(Backward):
                if (
                    event.twice
                    and not event.where.phase
                    and event.loss is not None
                    and not over_old_sum(path, event)  # which has a rule of its own
                    and in_sight([event.loss, *_owners(event)])
                    and not self._is_expected(event)
                ):
                    yield Fault.at(event, "runs through a graph that an earlier backward pass has freed: it raises")

    def _is_expected(self, event: Backward) -> bool:
        """Whether the error is caught where the pass stands: it is what the program shows, or tests."""
        node = self.node_of(event.site)
        above = list(self.tree.ancestors(node)) if node is not None else []
        return any(isinstance(each, cst.Try) and each.handlers and each.body in above for each in above)


def _owners(event: Backward) -> list[Module]:
    return [each.owner for each in event.parameters if each.owner is not None]
