from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import UnboundRead
from lightlint.explore.questions.queries import may_be_alone

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class NameUnboundOnOtherRanks(Check):
    of_several_processes = True

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Names that one of two ranks reads without having got to what gives them their values, as the other has."""
        for pair in entry.pairs():
            for path, other in (pair, pair[::-1]):
                if other.fails:  # before it comes to the name, perhaps
                    continue
                known = {event.name for event in other.of(UnboundRead)}
                for event in path.of(UnboundRead):
                    read_by_one = event.where.depends_on("rank")  # the other may have no value either, and not ask
                    if event.name not in known and not read_by_one and not may_be_alone(event.where):
                        message = f"`{event.name}` has a value on some ranks only, and is read on all: `NameError` on the others"
                        yield Fault.at(event, message)
