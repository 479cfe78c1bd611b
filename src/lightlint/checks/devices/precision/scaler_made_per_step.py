from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, Stepped
from lightlint.explore.questions.queries import scales

if TYPE_CHECKING:
    from lightlint.engine.frames import Loop
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site


class ScalerMadePerStep(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """GradScalers that are made anew for each batch, and step in the turn of the loop that made them."""
        for path in entry.paths:
            made: dict[tuple[Site, Loop], list[Called]] = {}
            for call in path.of(Called):
                loops = [turn.loop for turn in call.where.turns if turn.loop.kind == "batch"]
                if call.name == "GradScaler" and call.receiver is None and loops:
                    made.setdefault((call.site, loops[-1]), []).append(call)
            for calls in made.values():
                turns = {call.where.turns for call in calls}
                stepped = [event for event in path.of(Stepped) if _is_made_by(calls, event)]
                if len(turns) > 1 and stepped:
                    message = "each step gets a scaler of its own: none lives to adapt its scale, so a step that overflows once overflows for ever"
                    yield Fault.at(calls[0], message)


def _is_made_by(calls: list[Called], event: Stepped) -> bool:
    """Whether a step goes through a scaler that was made in the same turn of a loop."""
    scaler = event.scaler
    if scaler is None or scaler.site != calls[0].site or scales(scaler) is False:
        return False
    return any(event.where.turns[: len(call.where.turns)] == call.where.turns for call in calls)
