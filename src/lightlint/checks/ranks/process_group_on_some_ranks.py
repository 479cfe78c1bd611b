from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import GroupMade
from lightlint.engine.machine import plain_key
from lightlint.explore.queries import on_some_ranks
from lightlint.facts.file import FileFacts
from lightlint.facts.joining import left_alone, may_be_joined
from lightlint.facts.sources import sources
from lightlint.values.core import Sequence

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_DEPTH = 3
_MAKES = {
    f"torch.distributed.{name}"
    for name in ("new_group", "new_subgroups", "new_subgroups_by_enumeration", "init_device_mesh")
} | {"torch.distributed.device_mesh.init_device_mesh"}


class ProcessGroupOnSomeRanks(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if not self._makes(call):
            return
        members = self._is_of_members(call) and not may_be_joined(self.facts, call, self._makes)
        if members or left_alone(self.facts, call, self._makes):
            who = "its members" if members else "some ranks"
            self.report(
                call,
                f"only {who} call `{self.code.text_of(call.func)}`: all ranks have to, and in the same order",
            )

    def _makes(self, call: cst.Call) -> bool:
        """Whether a call makes process groups together with all other ranks."""
        if self.names.call(call) not in _MAKES or self.names.has_star(call):
            return False
        local = self.names.argument(call, "use_local_synchronization")
        return local is None or self.names.constant(local.value) is False

    def _is_of_members(self, call: cst.Call) -> bool:
        """Whether a test lets only those ranks make a group that are in it: `if rank in ranks: new_group(ranks)`."""
        given = self.names.argument(call, "ranks", 0)
        key = self.names.key(given.value) if given is not None else ""
        if given is None or not key or self._may_be_all(given.value):
            return False
        return any(self._asks_for(test, key, outcome) for test, outcome in self.facts.conditions(call))

    def _may_be_all(self, ranks: cst.BaseExpression) -> bool:
        """Whether ranks may be those of the whole run, `range(world_size)`, or are what is out of sight."""
        return any(self._is_range(home, each, 0) for home, each in sources(self.facts, ranks))

    def _is_range(self, home: FileFacts, ranks: cst.BaseExpression | None, depth: int) -> bool:
        if isinstance(ranks, cst.Attribute | cst.Subscript):
            return True
        if not isinstance(ranks, cst.Call) or not ranks.args or depth > _DEPTH:
            return False
        if home.names.call(ranks) in {"builtins.list", "builtins.tuple", "builtins.set"}:
            return any(self._is_range(room, each, depth + 1) for room, each in sources(home, ranks.args[0].value))
        if home.names.call(ranks) != "builtins.range":
            return False
        return len(ranks.args) == 1 and not isinstance(ranks.args[0].value, cst.BinaryOperation)

    def _asks_for(self, test: cst.BaseExpression, key: str, outcome: bool) -> bool:
        match test:
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
                held = isinstance(operator, cst.In if outcome else cst.NotIn)
                return held and self.names.key(right) == key and self.guards.is_rank(left)
        return False

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
