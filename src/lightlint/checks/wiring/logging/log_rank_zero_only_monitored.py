from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Logged
from lightlint.explore.questions.queries import watched_keys
from lightlint.facts.ranks.world import Ranks
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import rename
from lightlint.values.core import is_constant, text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LogRankZeroOnlyMonitored(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        ranks = self.facts.world.lightning
        on_first = (each for each in entry.of(Logged) if is_constant(each.keywords.get("rank_zero_only"), True))
        for event in on_first if ranks is not Ranks.ONE else ():
            key = text_of(event.name)
            if key in watched_keys(entry) | self.facts.monitors.keys:
                message = f"`{key}` is monitored and differs between the ranks: they decide differently and wait for each other"
                tier = None if ranks is Ranks.MANY else Tier.WARNING
                yield Fault.of(event, message, tier=tier, argument="rank_zero_only")

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        """Take the mean of all ranks instead, unless the call stands where one rank only gets to it."""
        argument = self.entry_of(node, fault.argument)
        if not isinstance(node, cst.Call) or not isinstance(argument, cst.Arg) or argument.keyword is None:
            return None
        if self.names.argument(node, "sync_dist") is not None or self.guards.guarded(node):
            return None
        draft = rename(self.code, argument.keyword, "sync_dist")
        return Repair("log the mean of all ranks", draft, Applicability.UNSAFE)
