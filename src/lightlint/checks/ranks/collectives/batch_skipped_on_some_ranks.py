from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Left
from lightlint.explore.questions.queries import loops_together

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class BatchSkippedOnSomeRanks(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Batches that a rank leaves out for the numbers in them, in a loop whose passes exchange gradients."""
        together = loops_together(entry)
        for path in entry.paths:
            for event in path.of(Left):
                turns = event.where.turns
                if (
                    turns
                    and turns[-1].loop.site in together
                    and event.where.within("batch")
                    and _only_skips(event)
                    and _hangs_on_own_data(event)
                    and not _trains_in_turn(path, event)
                ):
                    message = (
                        "each rank decides by a batch of its own: one that leaves this out pairs its next backward "
                        "pass with another step of the others"
                    )
                    yield Fault.at(event, message)


def _only_skips(event: Left) -> bool:
    """Whether the loop goes on with its next turn."""
    return event.word == "continue" or (event.word == "return" and not event.leaves_loop)


def _hangs_on_own_data(event: Left) -> bool:
    """Whether a test of this rank's numbers stands before it: in the function itself for a `return`, else every function returns
    behind the tests of those that call it."""
    where = event.where
    return (where.depends_inside_on_unknown if event.word == "return" else where.depends_on_unknown)("own data")


def _trains_in_turn(path: Path, event: Left) -> bool:
    turns = event.where.turns
    return any(each.where.turns[: len(turns)] == turns for each in path.of(Backward))
