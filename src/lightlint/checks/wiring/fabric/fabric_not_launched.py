from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called
from lightlint.facts.lightning.fabric import SETUPS
from lightlint.values.core import Constant, Sequence, is_constant, number_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_NEEDS_LAUNCH = {*SETUPS, "setup_dataloaders", "barrier", "all_reduce", "all_gather", "broadcast"}


class FabricNotLaunched(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for path in entry.paths:
            used: dict[int, Called] = {}
            launched: set[int] = set()
            for event in path.of(Called):
                fabric = event.receiver
                if fabric is None or fabric.kind != "fabric":
                    continue
                if event.path == "launch":
                    launched.add(fabric.number)
                    if is_constant(event.argument("function", 0), None) and not self.is_versioned(event):
                        message = "`launch` gets None, which the function returned: it ran before the processes were"
                        yield Fault.at(event, f"{message} started, so hand over the function itself, without a call")
                elif event.path in _NEEDS_LAUNCH and fabric.number not in launched:
                    used.setdefault(fabric.number, event)
            for number, event in used.items():
                made = event.receiver
                if made is None or number in launched or made.site is None or made.open_arguments or made.escaped:
                    continue
                devices, strategy = made.arguments.get("devices"), made.arguments.get("strategy")
                count = len(devices.items) if isinstance(devices, Sequence) else number_of(devices) or 1
                if count > 1 and (
                    strategy is None or (isinstance(strategy, Constant) and not is_constant(strategy, "dp"))
                ):
                    text = f"nothing launches this Fabric's processes: `{event.path}` raises unless `fabric run` starts the script"
                    yield Fault(made.site, text, also=event.where.places)
