from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.world import Ranks
from lightlint.finding import Tier

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
