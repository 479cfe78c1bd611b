from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called, Event, TensorMoved
from lightlint.engine.frames import Condition
from lightlint.explore.queries import speaks_of
from lightlint.facts.classes import MODULE
from lightlint.facts.hooks import Owner
from lightlint.facts.world import Ranks
from lightlint.finding import Tier
from lightlint.fixes.edits import replace
from lightlint.values.core import text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_DEVICES = re.compile("device|cuda|gpu|rank|world|node", re.IGNORECASE)
_NUMBERED = re.compile(r"cuda:\d+$")


class HardcodedDeviceInModule(Check):
    def visit_Call(self, call: cst.Call) -> None:
        device = self._device(call)
        if device is None or not self._runs_in_step(call) or self.facts.conditions(call):
            return
        spelled = self.names.constant(device) if isinstance(device, cst.SimpleString) else self.code.text_of(call)
        self.report(
            device,
            f"`{spelled}` is one device for all processes, whichever device the Trainer gave this one",
            tier=Tier.NOTE if self.facts.world.lightning is Ranks.ONE else None,
            repair=self._repair(device),
        )

    def _device(self, call: cst.Call) -> cst.BaseExpression | None:
        """The device with a number that a call writes out: `x.to("cuda:0")`, `torch.zeros(3, device="cuda:0")`, `x.cuda(0)`."""
        method, name = self.names.method(call), self.names.call(call) or ""
        if method == "cuda" and isinstance(call.func, cst.Attribute) and len(call.args) == 1:
            return call if isinstance(self.names.constant(call.args[0].value), int) else None
        first = 0 if method == "to" or name == "torch.device" else None
        given = self.names.argument(call, "device", first)
        value = self.names.constant(given.value) if given is not None else None
        takes = method == "to" or name.startswith("torch.")
        numbered = isinstance(value, str) and _NUMBERED.match(value)
        return given.value if given is not None and takes and numbered else None

    def _runs_in_step(self, call: cst.Call) -> bool:
        """Whether a LightningModule runs a call for each batch: in a hook, `forward`, or a method that they call."""
        function = self.tree.function(call)
        if function is None or not self.classes.is_a(self.tree.class_of(function), MODULE):
            return False
        hooks = [hook for hook in self.hooks.reached(function) if hook.owner is Owner.MODULE]
        return any(hook.per_batch or hook.name == "forward" for hook in hooks)

    def _repair(self, device: cst.BaseExpression) -> Repair | None:
        function = self.tree.function(device)
        first = function.params.params[:1] if function is not None else ()
        if not isinstance(device, cst.SimpleString) or not first or not self.classes.is_self(first[0].name):
            return None
        parent = self.tree.parent(device)
        call = self.tree.parent(parent) if parent is not None else None
        if self.names.call(call) == "torch.device":
            return None
        return Repair("take the device of the module", replace(self.code, device, f"{first[0].name.value}.device"))

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
                tier = Tier.NOTE if self.facts.world.lightning is Ranks.ONE else None
                yield Fault.of(event, message, tier=tier)


def _asks_devices(condition: Condition) -> bool:
    """Whether a test may know on which device, or as one of how many processes, the program runs."""
    return condition.known or condition.key is None or speaks_of(condition.key, _DEVICES)
