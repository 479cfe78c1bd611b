from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import MetricUsed

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.training import Instance


class MetricSharedByStages(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Metrics that take batches of validation while they hold those of training, and are read then."""
        for path in entry.paths:
            trained: set[Instance] = set()
            mixed: set[Instance] = set()
            for event in path.of(MetricUsed):
                metric, grows = event.metric, event.operation in ("update", "forward")
                if event.operation == "reset":
                    trained.discard(metric)
                    mixed.discard(metric)
                elif grows and event.where.phase == "train" and event.where.hook and not _is_before(event.where.hook):
                    trained.add(metric)
                elif grows and event.where.phase == "val" and metric in trained:
                    mixed.add(metric)
                elif event.operation in ("compute", "log") and metric in mixed and metric.site and not metric.escaped:
                    message = f"this `{metric.name}` takes in batches of training and of validation"
                    yield Fault(metric.site, f"{message}: what it computes mixes both", also=event.where.places)


def _is_before(hook: str) -> bool:
    """Whether a hook comes before all batches: what a metric takes in there is where it begins."""
    return hook.endswith("_start") and "batch" not in hook
