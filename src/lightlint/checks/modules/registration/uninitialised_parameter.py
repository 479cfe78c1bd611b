from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, GarbageRead
from lightlint.facts.project.mentions import is_mentioned_elsewhere, may_be_filled_elsewhere
from lightlint.finding import Tier
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_EMPTY = {"torch.empty", "torch.Tensor", "torch.FloatTensor", "torch.cuda.FloatTensor", "torch.empty_like"}
# what fills parameters without naming them
_FILLING = {
    "parameters",
    "named_parameters",
    "apply",
    "modules",
    "__dict__",
    "load_state_dict",
    "post_init",
    "init_weights",
}


class UninitialisedParameter(Check):
    def wants_passes(self) -> bool:
        return not self._fills_all()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parameters that a forward pass computes with and whose memory nobody has filled."""
        for event in entry.of(GarbageRead):
            site, name = event.parameter.site, _name_of(event)
            rows = {each.site[1] for each in entry.of(AttributeSet) if _is_of(each, event)}
            if site is None or self._fills_all() or self._is_assigned(name, rows | {site[1]}):
                continue
            if not may_be_filled_elsewhere(self.facts.project, self.facts.source, name):
                message = "this parameter keeps whatever was in memory: nothing in sight gives it a first value"
                nodes = [
                    n
                    for n in self.tree.all(cst.ClassDef)
                    if event.where.module and n.name.value == event.where.module.name
                ]
                yield Fault(site, message, None if any(map(self._is_wanted, nodes)) else Tier.NOTE)

    def _is_wanted(self, node: cst.ClassDef) -> bool:
        """Whether anything in sight names a class: one that nobody makes harms nobody yet."""
        name = node.name.value
        here = any(each.value == name and each is not node.name for each in self.tree.all(cst.Name))
        return here or is_mentioned_elsewhere(self.facts.project, self.facts.source, name)

    def _memory(self, value: cst.BaseExpression) -> cst.Call | None:
        """The call in `Parameter(torch.empty(n, m))` that takes memory as it is."""
        if self.names.call(value) != "torch.nn.Parameter" or not isinstance(value, cst.Call) or not value.args:
            return None
        given = value.args[0].value
        if not isinstance(given, cst.Call) or self.names.call(given) not in _EMPTY:
            return None
        if self.names.call(given) not in {"torch.empty", "torch.empty_like"} and self._holds_data(given):
            return None
        return given

    def _holds_data(self, call: cst.Call) -> bool:
        """Whether `torch.Tensor(x)` may be given data and not sizes."""
        first = call.args[0].value if call.args else None
        return len(call.args) < 2 and not isinstance(first, cst.Integer)

    def _is_assigned(self, name: str | None, rows: set[int]) -> bool:
        """Whether the file, elsewhere than in some rows, assigns to an attribute of a name, or to its data."""
        source = self.facts.source
        others = (
            each for each in self.tree.all(cst.Assign) if source.row_of(self.facts.positions.span(each)[0]) not in rows
        )
        filled = (each for each in others if self._memory(each.value) is None)
        targets = [each.target for assign in filled for each in assign.targets]
        data = [each.value for each in targets if isinstance(each, cst.Attribute) and each.attr.value == "data"]
        named = [each.attr.value for each in (*targets, *data) if isinstance(each, cst.Attribute)]
        return name in named

    def _fills_all(self) -> bool:
        """Whether code of the file may give all parameters their values, or one by its name."""
        words = {each.value for each in self.tree.all(cst.Name)}
        starts = ("init_", "_init", "reset_", "from_pretrained")
        return bool(words & _FILLING) or any(word.startswith(starts) for word in words)


def _is_of(event: AttributeSet, read: GarbageRead) -> bool:
    """Whether an attribute is given the parameter that is read, or the list with it."""
    value = event.value
    return value is read.parameter or (_is_list(value) and read.parameter in value.parameters())


def _name_of(event: GarbageRead) -> str | None:
    """The attribute that holds a parameter, or the list with it."""
    for module in event.where.module.modules() if event.where.module is not None else ():
        for name, value in module.attributes.items():
            if value is event.parameter or (_is_list(value) and event.parameter in value.parameters()):
                return name
    return None


def _is_list(value: Value) -> TypeGuard[Module]:
    return isinstance(value, Module) and value.items is not None
