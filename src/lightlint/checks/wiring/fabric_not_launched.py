from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Called
from lightlint.facts.compat import is_versioned
from lightlint.facts.fabric import SETUPS
from lightlint.facts.world import FABRIC
from lightlint.values.core import Constant, Sequence, is_constant, number_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_NEEDS_LAUNCH = {*SETUPS, "setup_dataloaders", "barrier", "all_reduce", "all_gather", "broadcast"}


class FabricNotLaunched(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) == FABRIC:
            self._unlaunched(call)
        elif self._is_method(call, "launch") and call.args and isinstance(call.args[0].value, cst.Call):
            given = call.args[0].value
            callee = self.hooks.callee(given)
            returns = self.values.returns(callee) if callee is not None else [given]
            if all(value is None for value in returns) and not is_versioned(self.facts, call):
                name = self.code.text_of(given.func)
                self.report(given, f"`launch` gets what `{name}` returns, not `{name}`, which has run by then")

    def _is_method(self, call: cst.Call, method: str) -> bool:
        func = call.func
        return (
            isinstance(func, cst.Attribute) and func.attr.value == method and self.facts.fabrics.is_fabric(func.value)
        )

    def _unlaunched(self, maker: cst.Call) -> None:
        """Several processes are asked for, and nothing in the file starts them before the first model is set up."""
        if not self._is_several(maker) or self._leaves_sight(maker):
            return
        words = {each.attr.value for each in self.tree.all(cst.Attribute)}
        uses = [each for each in self.tree.all(cst.Call) if self._uses(each, maker)]
        if "launch" not in words and uses:
            method = self.names.method(uses[0])
            self.report(
                maker,
                f"nothing launches this Fabric's processes: `{method}` raises unless `fabric run` starts the script",
            )

    def _uses(self, call: cst.Call, maker: cst.Call) -> bool:
        func = call.func
        known = isinstance(func, cst.Attribute) and func.attr.value in _NEEDS_LAUNCH
        return isinstance(func, cst.Attribute) and known and self.facts.fabrics.constructor(func.value) is maker

    def _is_several(self, maker: cst.Call) -> bool:
        devices, strategy = self.names.argument(maker, "devices", 2), self.names.argument(maker, "strategy", 1)
        value = self.names.constant(devices.value) if devices is not None else 1
        many = (isinstance(value, int) and value > 1) or (isinstance(value, list) and len(value) > 1)
        return many and (strategy is None or self.names.constant(strategy.value) != "dp")

    def _leaves_sight(self, maker: cst.Call) -> bool:
        """Whether the Fabric is kept or handed where it may be launched out of sight."""
        for call in self.tree.all(cst.Call):
            handed = any(self.facts.fabrics.constructor(arg.value) is maker for arg in call.args)
            if handed and self.hooks.callee(call) is None:
                return True
        return False

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
