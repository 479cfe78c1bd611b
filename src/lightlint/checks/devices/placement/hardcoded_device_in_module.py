from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called, Event, TensorMoved
from lightlint.engine.frames import Condition
from lightlint.explore.questions.queries import speaks_of
from lightlint.facts.ranks.world import Ranks
from lightlint.finding import Tier
from lightlint.fixes.edits import replace
from lightlint.values.core import text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_DEVICES = re.compile("device|cuda|gpu|rank|world|node", re.IGNORECASE)
_NUMBERED = re.compile(r"cuda:\d+$")


class HardcodedDeviceInModule(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Devices with a number that a step of Lightning writes out."""
        named: list[tuple[Event, str | None]] = [
            (event, text_of(event.argument("device"))) for event in entry.of(Called) if event.path.startswith("torch.")
        ]
        moved: list[tuple[Event, str | None]] = [(event, event.named) for event in entry.of(TensorMoved)]
        for event, text in [*named, *moved]:
            where = event.where
            driven = any(turn.loop.driven and turn.loop.kind == "batch" for turn in where.turns)
            if text and _NUMBERED.match(text) and driven and not any(map(_asks_devices, where.conditions)):
                message = f"`{text}` is one device for all processes, whichever device the Trainer gave this one"
                world = self.facts.world
                tier = Tier.NOTE if world.lightning is Ranks.ONE or world.may_be_run_elsewhere else None
                yield Fault.of(event, message, tier=tier)

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        if not isinstance(node, cst.Call):
            return None
        given = self.names.argument(node, "device", 0 if self.names.method(node) == "to" else None)
        return self._with_own(given.value) if given is not None else None

    def _with_own(self, device: cst.BaseExpression) -> Repair | None:
        function = self.tree.function(device)
        first = function.params.params[:1] if function is not None else ()
        if not isinstance(device, cst.SimpleString) or not first or not self.classes.is_self(first[0].name):
            return None
        parent = self.tree.parent(device)
        call = self.tree.parent(parent) if parent is not None else None
        if self.names.call(call) == "torch.device":
            return None
        return Repair("take the device of the module", replace(self.code, device, f"{first[0].name.value}.device"))


def _asks_devices(condition: Condition) -> bool:
    """Whether a test may know on which device, or as one of how many processes, the program runs."""
    return condition.known or condition.key is None or speaks_of(condition.key, _DEVICES)
