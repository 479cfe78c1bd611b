from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Logged
from lightlint.explore.queries import watched_keys
from lightlint.facts.world import Ranks
from lightlint.finding import Tier
from lightlint.values.core import is_constant, text_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site

_DEPTH = 3


class LogInRankGuard(Check):
    def stands(self) -> bool:
        return self.facts.world.lightning is not Ranks.ONE

    def visit_Call(self, call: cst.Call) -> None:
        if not self.facts.logs.is_log(call):
            return
        if self.facts.logs.argument(call, "rank_zero_only") is not None or not self._on_some_ranks(call):
            return
        effect = self._effect(call)
        if effect and not self._has_counterpart(call):
            tier = Tier.WARNING if self.facts.world.is_untold else None
            self.report(call, f"`{self.names.method(call)}` on some ranks only: {effect}", tier=tier)

    def _on_some_ranks(self, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether a rank test or `rank_zero_only` surely keeps some ranks away from a node, or from all calls of its helper."""
        function = self.tree.function(node)
        if self.guards.tests(node):
            return True
        if function is None or depth > _DEPTH:
            return False
        if any((self.names.of(each.decorator) or "").endswith("rank_zero_only") for each in function.decorators):
            return True
        calls = self.hooks.calls_of.get(function, ())
        is_hook = self.hooks.of(function) is not None
        return bool(calls) and not is_hook and all(self._on_some_ranks(each, depth + 1) for each in calls)

    def _effect(self, call: cst.Call) -> str:
        """What becomes of it, empty where it does no harm."""
        if self.facts.logs.argument(call, "sync_dist") is True:
            return "`sync_dist` waits for the others, which never come"
        value = self.names.argument(call, "value", 1)
        origins = self.values.origins(value.value) if value is not None and self.names.method(call) == "log" else ()
        if origins and all(each.name.startswith("torchmetrics.") for each in origins):
            return "the metric is synchronized at the end of the epoch and waits for the others, which never come"
        watched = sorted((self.facts.logs.keys(call) or frozenset()) & self.facts.monitors.keys)
        return f"`{watched[0]}` is monitored, and the others do not have it" if watched else ""

    def _has_counterpart(self, call: cst.Call) -> bool:
        """Whether the other ranks log as well, in the other branch of the test."""
        mine = set(self.guards.tests(call))
        function = self.tree.function(call)
        others = (
            [each for each in self.tree.within(function, cst.Call) if self.facts.logs.is_log(each)] if function else []
        )
        return any((test, not outcome) in mine for each in others for test, outcome in self.guards.tests(each))

    def clears(self, entry: Entry) -> Iterator[Site]:
        """Where all ranks log the same."""
        for first, second in entry.pairs():
            there = {_joined(event) for event in second.of(Logged)}
            yield from (event.site for event in first.of(Logged) if _joined(event) in there)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for first, second in entry.pairs():
            there = {_joined(event) for event in second.of(Logged)}
            for event in first.of(Logged):
                if _joined(event) in there or event.keywords.get("rank_zero_only") is not None:
                    continue
                key, value = text_of(event.name), event.value
                if is_constant(event.keywords.get("sync_dist"), True):
                    effect = "`sync_dist` waits for the others, which never come"
                elif isinstance(value, Instance) and value.kind == "metric":
                    effect = (
                        "the metric is synchronized at the end of the epoch and waits for the others, which never come"
                    )
                elif key in watched_keys(entry) | self.facts.monitors.keys:
                    effect = f"`{key}` is monitored, and the others do not have it"
                else:
                    continue
                tier = Tier.WARNING if self.facts.world.is_untold else None
                yield Fault.of(event, f"`{event.method}` on some ranks only: {effect}", tier=tier)


def _joined(event: Logged) -> tuple[str, str | None]:
    """What the ranks must have in common: where it is logged, and under which name."""
    return event.where.hook, text_of(event.name)
