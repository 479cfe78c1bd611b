from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import MetricUsed
from lightlint.explore.questions.queries import identity_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.training import Instance


class MetricSharedByStages(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Metrics that take batches of validation while they hold those of training, and are read then, on each path."""
        found = [event for path in entry.paths for event in _read_mixed(path)]
        cleared = {identity_of(each) for path in entry.paths for each in _cleared(path)}
        for event in found:
            metric = event.metric
            if metric.site and not metric.escaped and identity_of(metric) not in cleared:
                message = f"this `{metric.name}` takes in batches of training and of validation"
                yield Fault(metric.site, f"{message}: what it computes mixes both", also=event.where.places)


def _read_mixed(path: Path) -> Iterator[MetricUsed]:
    """Where metrics are read that hold batches of both stages."""
    trained: set[Instance] = set()
    mixed: set[Instance] = set()
    for event in path.of(MetricUsed):
        metric = event.metric
        if event.operation == "reset":
            trained.discard(metric)
            mixed.discard(metric)
        elif _grows(event) and event.where.phase == "train" and event.where.hook and not _is_before(event.where.hook):
            trained.add(metric)
        elif _grows(event) and event.where.phase == "val" and metric in trained:
            mixed.add(metric)
        elif event.operation in ("compute", "log") and metric in mixed:
            yield event


def _cleared(path: Path) -> set[Instance]:
    """The metrics of both stages that a path clears between them, as it does behind some tests only."""
    uses = path.of(MetricUsed)
    used = [
        {event.metric for event in uses if _grows(event) and event.where.phase == phase} for phase in ("train", "val")
    ]
    read = {event.metric for event in uses if event.operation in ("compute", "log") and event.where.phase != "train"}
    faulty = {event.metric for event in _read_mixed(path)}
    return (used[0] & used[1] & read) - faulty if path.finished else set()


def _grows(event: MetricUsed) -> bool:
    return event.operation in ("update", "forward")


def _is_before(hook: str) -> bool:
    """Whether a hook comes before all batches: what a metric takes in there is where it begins."""
    return hook.endswith("_start") and "batch" not in hook
