from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.choices import plain_key
from lightlint.engine.events import GroupMade
from lightlint.explore.questions.queries import on_some_ranks
from lightlint.values.core import Sequence

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ProcessGroupOnSomeRanks(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Groups that only some ranks make, or, by a test for membership, only those that are in it."""
        some = {event.site: event for event in on_some_ranks(entry, GroupMade, lambda each: not _is_of_all(each))}
        members = {event.site: event for event in entry.of(GroupMade) if _is_for_members(event)}
        others = {event.site for event in entry.of(GroupMade)} - members.keys()
        for event in [*some.values(), *(members.values() if not others else ())]:
            who = "some ranks" if event.site in some else "its members"
            yield Fault.at(event, f"only {who} call `{event.name}`: all ranks have to, and in the same order")


def _is_for_members(event: GroupMade) -> bool:
    """Whether a test let only the ranks make a group that are in it, of ranks that are not those of the whole run."""
    key = event.ranks.key if event.ranks is not None else None
    asked = [
        (each, *plain_key(each.key)) for each in event.where.conditions if "rank" in each.traits and not each.known
    ]
    return key is not None and any(
        isinstance(test, tuple) and test[0] == "in" and test[-1] == key and each.outcome != negated
        for each, test, negated in asked
    )


def _is_of_all(event: GroupMade) -> bool:
    return isinstance(event.ranks, Sequence) and event.ranks.more
