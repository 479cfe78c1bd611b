from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import ScheduleStepped
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_argument, replace
from lightlint.models.names.metrics import direction
from lightlint.values.core import Constant, Value, text_of
from lightlint.values.training import Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_PLATEAU = "torch.optim.lr_scheduler.ReduceLROnPlateau"


class PlateauModeMismatch(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Steps with a metric whose name says that it gets better the other way."""
        for event in entry.of(ScheduleStepped):
            mode = _mode(event.schedule)
            wanted = _wanted(event.args[0]) if event.args and mode else ""
            if wanted and mode != wanted:
                better = "rises" if wanted == "max" else "falls"
                metric = self._spelled(event) or _name(event.args[0])
                message = f'the scheduler waits with `mode="{mode}"` for `{metric}`'
                effect = f"it lowers the learning rate while that {better}, as it should"
                yield Fault(event.site, f"{message}: {effect}", fixed_at=event.schedule.site)

    def _spelled(self, event: ScheduleStepped) -> str:
        """How the call names the metric."""
        call = self.node_of(event.site)
        plain = isinstance(call, cst.Call) and self.names.method(call) == "step" and call.args
        return self.code.text_of(call.args[0].value) if isinstance(call, cst.Call) and plain else ""

    def repair(self, _: cst.CSTNode, fault: Fault) -> Repair | None:
        made = self.node_of(fault.fixed_at) if fault.fixed_at is not None else None
        if not isinstance(made, cst.Call) or self.names.of(made.func) != _PLATEAU:
            return None
        wanted = "max" if 'mode="min"' in fault.message else "min"
        given = self.names.argument(made, "mode", 1)
        if given is None:
            draft = insert_argument(self.code, made, f'mode="{wanted}"')
        else:
            draft = replace(self.code, given.value, f'"{wanted}"')
        return Repair(f'make it `mode="{wanted}"`', draft, Applicability.UNSAFE)


def _mode(schedule: Schedule) -> str:
    """What a plateau waits for, empty where that is out of sight."""
    if schedule.libraries() != [_PLATEAU] or schedule.assumed or schedule.open_arguments:
        return ""
    given = schedule.argument("mode", 1)
    return "min" if given is None else text_of(given) or ""


def _wanted(metric: Value) -> str:
    """The mode that a metric's name asks for, empty where it asks for none, or for both."""
    turned = metric.terms is not None and metric.terms[0] == "-"  # `-accuracy`, `1 - accuracy`
    if turned or isinstance(metric, Constant):
        return ""
    last = re.split(r"[.\[]", _name(metric))[-1]
    return direction(last)


def _name(value: Value) -> str:
    return value.named or str(getattr(value, "hint", ""))
