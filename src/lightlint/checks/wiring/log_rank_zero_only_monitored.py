from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Logged
from lightlint.explore.queries import watched_keys
from lightlint.facts.world import Ranks
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import rename
from lightlint.values.core import is_constant, text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LogRankZeroOnlyMonitored(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if not self.facts.logs.is_log(call) or self.facts.logs.argument(call, "rank_zero_only") is not True:
            return
        keys = self.facts.logs.keys(call)
        watched = sorted(keys & self.facts.monitors.keys) if keys else []
        if not watched:
            return
        ranks = self.facts.world.lightning
        if ranks is Ranks.ONE:
            return
        argument = self.names.argument(call, "rank_zero_only")
        self.report(
            argument or call,
            f"`{watched[0]}` is monitored and differs between the ranks: they decide differently and wait for each other",
            tier=None if ranks is Ranks.MANY else Tier.WARNING,
            repair=self._repair(call, argument) if argument is not None else None,
        )

    def _repair(self, call: cst.Call, argument: cst.Arg) -> Repair | None:
        """Take the mean of all ranks instead, unless the call stands where one rank only gets to it."""
        if self.names.argument(call, "sync_dist") is not None or self.guards.guarded(call) or argument.keyword is None:
            return None
        draft = rename(self.code, argument.keyword, "sync_dist")
        return Repair("log the mean of all ranks", draft, Applicability.UNSAFE)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        ranks = self.facts.world.lightning
        on_first = (each for each in entry.of(Logged) if is_constant(each.keywords.get("rank_zero_only"), True))
        for event in on_first if ranks is not Ranks.ONE else ():
            key = text_of(event.name)
            if key in watched_keys(entry) | self.facts.monitors.keys:
                message = f"`{key}` is monitored and differs between the ranks: they decide differently and wait for each other"
                yield Fault.of(event, message, tier=None if ranks is Ranks.MANY else Tier.WARNING)
