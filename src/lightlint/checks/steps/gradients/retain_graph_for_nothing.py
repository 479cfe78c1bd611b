from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Differentiated
from lightlint.explore.questions.queries import in_batch, sure
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import remove_argument
from lightlint.values.core import Site

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class RetainGraphForNothing(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Graphs that a pass has kept and no later one goes over, on each path."""
        again: set[Site] = set()  # also that of the last turn of a loop over what one pass gave: others are kept there
        for path in entry.paths:
            kept: list[Backward] = []
            for event in path.events:
                if isinstance(event, (Backward, Differentiated)):
                    again |= {each.site for each in kept if each.graph & event.graph or _is_open(event)}
                    kept += [event] if isinstance(event, Backward) and event.kept else []
        message = "keeps what the forward pass saved, and nothing goes back over it again"
        for event in sure(entry, Backward, lambda each: _is_kept(each) and each.site not in again):
            yield Fault.at(event, message, tier=None if _is_all_seen(event) else Tier.NOTE)

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        kept = self.names.argument(node, "retain_graph", 1) if isinstance(node, cst.Call) else None
        if not isinstance(node, cst.Call) or kept is None or self.names.constant(kept.value) is not True:
            return None
        return Repair("free the graph", remove_argument(self.code, node, kept), Applicability.UNSAFE)


def _is_kept(event: Backward) -> bool:
    graphs = not any(graph.escaped for graph in event.graph)
    known = event.loss is not None and not event.loss.mixed and bool(event.graph)
    return event.kept and known and graphs and in_batch(event.where) and not _is_among_several(event)


def _is_among_several(event: Backward) -> bool:
    """Whether a loop within that over batches has a pass for each of several things: what came before it may be out of sight,
    and all of these go over that.
    """
    return not event.where.turns[-1].loop.known and event.where.turns[-1].loop.kind != "batch"


def _is_all_seen(event: Backward) -> bool:
    """Whether all models that a pass goes through are in sight: another may keep something from pass to pass."""
    owners = [each.owner for each in event.parameters]
    return not any(each is None or each.assumed or each.opaque for each in owners)


def _is_open(event: Backward | Differentiated) -> bool:
    """Whether a pass may go over more than is known of."""
    loss = event.loss if isinstance(event, Backward) else None
    return not event.graph or (loss is not None and loss.mixed)
