from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Collective, Logged
from lightlint.explore.queries import watched_keys
from lightlint.facts.hooks import Owner
from lightlint.facts.world import Ranks
from lightlint.values.core import is_constant, text_of
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_EVALUATION = {"validation_step", "test_step", "on_validation_epoch_end", "on_test_epoch_end"}
_GATHERING = {"compute", "all_gather", "all_reduce", "reduce", "gather", "all_gather_object"}


class EpochLogWithoutSyncDist(Check):
    def stands(self) -> bool:
        return self.facts.world.lightning is Ranks.MANY

    def visit_Call(self, call: cst.Call) -> None:
        if not self.facts.logs.is_log(call) or self.names.method(call) != "log":
            return
        if self.guards.guarded(call):
            return
        if self.facts.logs.argument(call, "sync_dist") not in {None, False}:
            return
        if self.facts.logs.argument(call, "rank_zero_only") is not None:
            return
        hooks = self.facts.logs.sure_hooks(call)
        names = {hook.name for hook in hooks if hook.owner is Owner.MODULE}
        value = self.names.argument(call, "value", 1)
        if not names or not names <= _EVALUATION or value is None or not self._is_local(value.value):
            return
        watched = sorted((self.facts.logs.keys(call) or frozenset()) & self.facts.monitors.keys)
        if watched:
            self.report(
                call,
                f"`{watched[0]}` is monitored and logged without `sync_dist`: each rank sees the mean of its own share",
            )

    def _is_local(self, value: cst.BaseExpression) -> bool:
        """Whether a value is a number or tensor of this rank's batch, not a metric and not gathered."""
        if isinstance(value, cst.Attribute):
            return False
        function = self.tree.function(value)
        calls = self.tree.within(function, cst.Call) if function is not None else []
        if any(
            self.names.method(call) in _GATHERING or "torchmetrics" in (self.names.call(call) or "") for call in calls
        ):
            return False
        return not any(each.name.startswith("torchmetrics.") for each in self.values.origins(value))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for path in entry.paths:
            gathered = {event.where.hook for event in path.of(Collective)}
            for event in path.of(Logged):
                key, synced = text_of(event.name), event.keywords.get("sync_dist")
                local = (
                    isinstance(event.value, Tensor)
                    and event.value.metric is None
                    and not event.where.depends_on("rank")
                )
                plain = synced is None or is_constant(synced, False)
                plain &= not event.open_keywords and "rank_zero_only" not in event.keywords
                if not (local and plain and event.where.hook in _EVALUATION - gathered):
                    continue
                if key in watched_keys(entry) | self.facts.monitors.keys:
                    message = (
                        f"`{key}` is monitored and logged without `sync_dist`: each rank sees the mean of its own share"
                    )
                    yield Fault.of(event, message)
