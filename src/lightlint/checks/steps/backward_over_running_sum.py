from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward
from lightlint.explore.queries import over_old_sum
from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.tree import Loop

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class BackwardOverRunningSum(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name, loops = self._differentiated(call), self.tree.loops(call)
        if name is None or not loops or self.names.argument(call, "retain_graph") is not None:
            return
        loop = loops[0]
        bound = self.names.bindings.lookup(name)
        inside = [each for each in bound if self.tree.contains(loop, each.site)]
        if not inside or len(inside) == len(bound) or not all(self._adds(each) for each in inside):
            return
        if any(self.tree.owner(each.site) is not self.tree.owner(call) for each in bound) or self._is_cut(name, loop):
            return
        if self.facts.flow(self.tree.owner(call)).reaches_in_later_iteration(loop, call, [call]):
            self.report(
                call,
                f"`{name.value}` holds the losses of earlier iterations, whose graphs are gone: the second pass raises",
            )

    def _differentiated(self, call: cst.Call) -> cst.Name | None:
        """`total` of `total.backward()` and of `scaler.scale(total).backward()`."""
        if self.names.method(call) != "backward" or call.args or not isinstance(call.func, cst.Attribute):
            return None
        receiver = call.func.value
        if self.facts.updates.scaler_of(call) is not None and isinstance(receiver, cst.Call) and receiver.args:
            receiver = receiver.args[0].value
        return receiver if isinstance(receiver, cst.Name) else None

    def _adds(self, binding: Binding) -> bool:
        """`total += loss` or `total = total + loss`, with a loss that is not a plain number."""
        if binding.kind is Kind.AUGMENT:
            above = self.tree.parent(binding.site)
            adds = isinstance(above, cst.AugAssign) and isinstance(above.operator, cst.AddAssign)
            return adds and not self._is_plain(binding.value)
        value = binding.value
        if binding.kind is not Kind.ASSIGN or not isinstance(value, cst.BinaryOperation) or binding.path:
            return False
        own = [each for each in (value.left, value.right) if isinstance(each, cst.Name) and each.value == binding.name]
        return bool(own) and isinstance(value.operator, cst.Add) and not self._is_plain(value)

    def _is_plain(self, value: cst.CSTNode | None) -> bool:
        """Whether a value may be a number, or cut from its graph."""
        cutting = {"item", "detach", "float"}
        return value is None or any(self.names.method(each) in cutting for each in self.tree.within(value, cst.Call))

    def _is_cut(self, name: cst.Name, loop: Loop) -> bool:
        """Whether the loop cuts the sum from its history in place."""
        calls = self.tree.own(loop.body, cst.Call)
        on_it = [each.func for each in calls if isinstance(each.func, cst.Attribute)]
        return any(self.names.key(func.value) == name.value and func.attr.value.endswith("_") for func in on_it)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes over a sum that holds what an earlier pass has freed."""
        message = "the sum holds the losses of earlier iterations, whose graphs are gone: the second pass raises"
        for path in entry.paths:
            for event in path.of(Backward):
                if event.twice and not event.where.phase and over_old_sum(path, event):
                    yield Fault.at(event, message)
