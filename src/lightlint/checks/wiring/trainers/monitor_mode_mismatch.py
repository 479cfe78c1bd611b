from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Configured, Logged
from lightlint.facts.lightning.monitors import CHECKPOINT, STOPPING
from lightlint.facts.ranks.world import TRAINER
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_argument, replace
from lightlint.models.names.metrics import direction
from lightlint.values.core import Unknown, number_of, text_of, written
from lightlint.values.training import Instance

_PLATEAU = "torch.optim.lr_scheduler.ReduceLROnPlateau"

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value


class MonitorModeMismatch(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        metrics, longest = _metrics(entry), _most_epochs(entry)
        for name, positions in ((CHECKPOINT, (2, None)), (STOPPING, (0, 4))):
            for event in entry.calls.get(name, ()):
                given = event.argument("mode", positions[1])
                kept = event.argument("save_top_k")
                top = written(kept)
                keeps_all = kept is not None and (top is None or top.value in (-1, 0))
                keeps_all |= 0 < longest <= (number_of(top) or 0)
                sure = event.given.exact and not self.facts.lightning.may_be_below("1.3")  # then "auto" was the default
                known = given if given is not None or sure else Unknown()
                message = _message(event.argument("monitor", positions[0]), known, metrics)
                if message and not keeps_all:
                    yield Fault.of(event, message)
        for configured in entry.of(Configured):
            for each in configured.schedules if configured.automatic else ():
                schedule, holder = each.schedule, each.config or each.beside
                plateau = schedule.name == "ReduceLROnPlateau" and not schedule.open_arguments
                if plateau and schedule.site and holder is not None:
                    mode = schedule.argument("mode", 1)
                    message = _message(holder.items.get("monitor"), mode, metrics)
                    if message:
                        yield Fault(schedule.site, message)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        wanted = "max" if fault.message.endswith("more is better") else "min"
        made = self.names.of(node.func) if isinstance(node, cst.Call) else None
        if not isinstance(node, cst.Call) or made not in {CHECKPOINT, STOPPING, _PLATEAU}:
            return None  # what makes several kinds of callbacks takes a mode for one of them only
        mode = self.names.argument(node, "mode")
        if fault.message.startswith(_DEFAULT):
            draft = insert_argument(self.code, node, f'mode="{wanted}"')
        elif mode is not None and isinstance(mode.value, cst.SimpleString):
            draft = replace(self.code, mode.value, f"{mode.value.quote}{wanted}{mode.value.quote}")
        else:
            return None
        return Repair(f"take '{wanted}' for better", draft, Applicability.UNSAFE)


def _most_epochs(entry: Entry) -> float:
    """For how many epochs the Trainers of a program train at most, 0 where one of them does not say it."""
    told = [number_of(event.argument("max_epochs")) for event in entry.calls.get(TRAINER, ())]
    return max((each or 0 for each in told), default=0) if all(told) else 0


_DEFAULT = "the default `mode` is"


def _metrics(entry: Entry) -> dict[str, str]:
    """The classes of the metric objects that are logged, by the names that they are logged under; of several none."""
    found: dict[str, set[str]] = {}
    for event in entry.of(Logged):
        kind = event.value.name if isinstance(event.value, Instance) and event.value.kind == "metric" else ""
        found.setdefault(text_of(event.name) or "", set()).add(kind)
    return {key: kind for key, kinds in found.items() if len(kinds) == 1 for kind in kinds}


def _message(monitor: Value | None, given: Value | None, metrics: dict[str, str]) -> str:
    """What is wrong with the mode for a metric, empty where nothing is."""
    key, mode = text_of(written(monitor)), "min" if given is None else text_of(written(given))
    wanted = direction(key or "") or direction(metrics.get(key or "", ""))
    if not wanted or mode not in {"min", "max"} or mode == wanted:
        return ""
    better = "more" if wanted == "max" else "less"
    return f"{_DEFAULT if given is None else '`mode` is'} '{mode}' for `{key}`, of which {better} is better"
