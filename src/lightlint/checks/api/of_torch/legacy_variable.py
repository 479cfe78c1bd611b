from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.releases.compat import is_for_older
from lightlint.finding import Tier
from lightlint.fixes.edits import replace
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_FACTORIES = {"zeros", "ones", "empty", "full", "eye", "rand", "randn", "randint", "arange", "linspace", "tensor"}
_CASTS = {
    "Tensor",
    "FloatTensor",
    "DoubleTensor",
    "LongTensor",
    "IntTensor",
    "ByteTensor",
}  # may share a tensor's memory
_SAME_TENSOR = {"cuda", "cpu", "to", "float", "double", "half", "long", "int", "view", "unsqueeze", "contiguous"}
_PRIMARY = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)


_VOLATILE = "`volatile` does nothing since torch 0.4: it turns no gradients off"
_NOTHING = "`Variable` makes nothing but a tensor since torch 0.4"


class LegacyVariable(Check):
    asks_rest = frozenset(["Variable"])
    tells_of_old_code = True

    def visit_Call(self, call: cst.Call) -> None:
        if self.names.of(call.func) != "torch.autograd.Variable" or is_for_older(self.facts, call):
            return
        if not self.facts.torch.may_run_at("0.4"):
            return
        volatile = self.names.argument(call, "volatile", 2)
        if volatile is not None and self.names.constant(volatile.value) is not False:
            idle = self._is_left_out(volatile.value) or self._is_off(call)
            idle |= self.facts.target("torch").of_code  # it goes with a torch that heeds it
            self.report(call, _VOLATILE, tier=Tier.NOTE if idle else Tier.WARNING)
        else:
            self.report(call, _NOTHING, repair=self._repair(call))

    def _is_off(self, call: cst.CSTNode) -> bool:
        """Whether gradients may be off where it is called, or where something reads the name that gets what it makes."""
        statement = self.tree.statement(call)
        targets = statement.targets if isinstance(statement, cst.Assign) else ()
        names = {name.value for each in targets for name in self.tree.within(each.target, cst.Name)}
        reads = [each for each in self.tree.own(self.tree.owner(call), cst.Name) if each.value in names]
        return any(map(self.facts.gradients.may_be_off, [call, *reads]))

    def _is_left_out(self, value: cst.BaseExpression) -> bool:
        """Whether a value is a parameter that is False by default, and that no call of the file gives."""
        function = self.tree.function(value)
        if function is None or not isinstance(value, cst.Name):
            return False
        params = [*function.params.params, *function.params.kwonly_params]
        at = next((place for place, each in enumerate(params) if each.name.value == value.value), None)
        default = params[at].default if at is not None else None
        if at is None or default is None or self.names.constant(default) is not False:
            return False
        calls = [each for each in self.tree.all(cst.Call) if self.names.method(each) == function.name.value]
        return all(self.names.argument(each, value.value, at) is None for each in calls)

    def _repair(self, call: cst.Call) -> Repair | None:
        """What the call does: the same storage, cut off the graph, with gradients wanted or not."""
        data = self.names.argument(call, "data", 0)
        wanted = self.names.argument(call, "requires_grad", 1)
        requires = self.names.constant(wanted.value) if wanted else False
        known = [data, wanted, self.names.argument(call, "volatile", 2)]
        if data is None or data.star or not isinstance(requires, bool) or any(arg not in known for arg in call.args):
            return None
        text = self.code.text_of(data.value)
        text = text if isinstance(data.value, _PRIMARY) or data.value.lpar else f"({text})"
        fresh = self._is_fresh(data.value)
        if not fresh and (requires or not self._is_from_loader(data.value)):
            text += ".detach()"
        text += ".requires_grad_()" if requires else ""
        return Repair("write what `Variable` does today", replace(self.code, call, text))

    def _is_fresh(self, value: cst.CSTNode) -> bool:
        """Whether a tensor is made on the spot: nothing else holds it, and no graph leads to it."""
        while isinstance(value, cst.Call):
            name = (self.names.call(value) or "").removeprefix("torch.")
            if name in _FACTORIES:
                return self.names.argument(value, "requires_grad") is None and not self.names.has_star(value)
            if name in _CASTS:
                return all(self.names.constant(arg.value) is not UNKNOWN for arg in value.args)
            if not isinstance(value.func, cst.Attribute) or value.func.attr.value not in _SAME_TENSOR:
                return False
            value = value.func.value
        return False

    def _is_from_loader(self, value: cst.CSTNode) -> bool:
        """Whether a name is only what a DataLoader gives: such tensors have no graph."""
        found = self.names.bindings.lookup(value) if isinstance(value, cst.Name) else []
        loops = [each for each in found if each.kind is Kind.LOOP and each.value is not None]
        drawn = (self.values.iterated(each.value) for each in loops if each.value is not None)
        return bool(found) and len(loops) == len(found) and all(self.values.is_loader(each) for each in drawn)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.calls.get("torch.autograd.Variable", ()) if self.facts.torch.may_run_at("0.4") else ():
            volatile = event.argument("volatile", 2)
            if self.is_versioned(event):
                continue
            if volatile is not None and not is_constant(volatile, False):
                call = self.node_of(event.site)
                off = not event.where.grad or (call is not None and self._is_off(call))
                yield Fault.of(event, _VOLATILE, tier=Tier.NOTE if off else Tier.WARNING)
            else:
                yield Fault.of(event, _NOTHING)
