from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet
from lightlint.facts.classes import MODULE
from lightlint.finding import Tier
from lightlint.values.core import Class, Constant, Function, Sequence, Value, is_constant, text_of
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_METRIC = "torchmetrics.Metric"
_GROWING = {"append", "extend"}
_TENSORS = {"torch.tensor", "torch.zeros", "torch.as_tensor"}
_EMPTYING = {"clear", "zero_", "fill_", "pop"}
_OWN = {"reset", "forward", "__getattr__", "__setattr__", "state_dict", "_reduce_states"}


class MetricStateNotRegistered(Check):
    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        if _METRIC not in self.classes.base_names(node) or len(node.bases) != 1:
            return
        methods = self.classes.methods(node)
        init, update, compute = (methods.get(name) for name in ("__init__", "update", "compute"))
        if init is None or update is None or compute is None or not _OWN.isdisjoint(methods):
            return
        registered = self._registered(node)
        reads = {each.attr.value for each in self._own_attributes(compute)}
        if registered is None or node in self.hooks.subclasses:
            return
        for name, grown in dict(self._grown(update)).items():
            if name in reads and name not in registered and self._is_only_counted(node, name, init, update):
                used = self._is_used_in_module(node)
                self.report(
                    grown,
                    f"`{name}` is no state of the metric: `reset` leaves it as it is, and ranks do not sum it up",
                    tier=None if used else Tier.WARNING,
                )

    def _registered(self, node: cst.ClassDef) -> set[str] | None:
        """The states that a class registers, None where some are out of sight."""
        found: set[str] = set()
        for call in self.tree.within(node, cst.Call):
            if self.names.call(call) in {"builtins.setattr", "builtins.vars"}:
                return None
            given = self.names.argument(call, "name", 0) if self.names.method(call) == "add_state" else None
            name = self.names.constant(given.value) if given is not None else ""
            if not isinstance(name, str):
                return None
            found.add(name)
        return found

    def _own_attributes(self, function: cst.FunctionDef) -> list[cst.Attribute]:
        return [each for each in self.tree.within(function, cst.Attribute) if self.classes.is_self(each.value)]

    def _grown(self, update: cst.FunctionDef) -> Iterator[tuple[str, cst.BaseExpression]]:
        """The attributes that `update` adds to, with where it does."""
        for change in self.tree.own(update, cst.AugAssign):
            if isinstance(change.target, cst.Attribute) and isinstance(change.operator, cst.AddAssign):
                yield change.target.attr.value, change.target
        for call in self.tree.own(update, cst.Call):
            func = call.func
            if (
                isinstance(func, cst.Attribute)
                and func.attr.value in _GROWING
                and isinstance(func.value, cst.Attribute)
            ):
                yield func.value.attr.value, func.value

    def _is_only_counted(self, node: cst.ClassDef, name: str, init: cst.FunctionDef, update: cst.FunctionDef) -> bool:
        """Whether an attribute starts from nothing in `__init__`, and all else that sets it anywhere adds to it in `update`."""
        starts = 0
        for target in self.tree.all(cst.AssignTarget):
            for attribute in self.tree.within(target, cst.Attribute):
                if attribute.attr.value != name:
                    continue
                statement = self.tree.parent(target)
                inside = self.tree.contains(init, target) and self.classes.self_class(attribute.value) is node
                if not inside or not isinstance(statement, cst.Assign) or not self._is_nothing(statement.value):
                    return False
                starts += 1
        changed = [each.target for each in self.tree.all(cst.AugAssign)]
        grown = [each for each in changed if isinstance(each, cst.Attribute) and each.attr.value == name]
        if not all(self.tree.contains(update, each) and self.classes.is_self(each.value) for each in grown):
            return False
        return starts == 1 and not any(self._empties(each, name) for each in self.tree.all(cst.Call))

    def _empties(self, call: cst.Call, name: str) -> bool:
        """Whether a call takes all out of an attribute of that name."""
        func = call.func
        held = func.value if isinstance(func, cst.Attribute) and func.attr.value in _EMPTYING else None
        return isinstance(held, cst.Attribute) and held.attr.value == name

    def _is_nothing(self, value: cst.BaseExpression) -> bool:
        """Whether a value is one to count from: zero, an empty list, a tensor of zeros."""
        if isinstance(value, cst.List):
            return not value.elements
        if isinstance(value, cst.Call) and self.names.call(value) in _TENSORS and value.args:
            zero = self.names.constant(value.args[0].value)
            return self.names.call(value) == "torch.zeros" or (type(zero) in {int, float} and zero == 0)
        number = self.names.constant(value)
        return type(number) in {int, float} and number == 0

    def _is_used_in_module(self, node: cst.ClassDef) -> bool:
        """Whether a LightningModule of this file keeps one, which resets what it logs after each epoch."""
        made = (each for each in self.tree.all(cst.Call) if self.classes.local(self.names.call(each)) is node)
        return any(self.classes.is_a(self.tree.enclosing_class(each), MODULE) for each in made)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Attributes that `update` of a metric adds to and `compute` reads, and that are no states."""
        for event in entry.of(AttributeSet):
            metric, calls = event.object, event.where.calls
            if not isinstance(metric, Instance) or metric.kind != "metric" or not isinstance(metric.cls, Class):
                continue
            if not calls or calls[-1].function.name != "update":
                continue
            states, cls = metric.attributes.get("#states"), metric.cls
            known = states is None or (isinstance(states, Sequence) and not states.more)
            registered = isinstance(states, Sequence) and any(text_of(each) == event.name for each in states.items)
            if not known or registered or any(cls.find(name) is not None for name in _OWN) or not _counts(event):
                continue
            sets = [each.target for each in self.tree.all(cst.AssignTarget) if isinstance(each.target, cst.Attribute)]
            alone = sum(each.attr.value == event.name for each in sets) == 1
            emptied = any(self._empties(each, event.name) for each in self.tree.all(cst.Call))
            if alone and not emptied and _reads(cls.find("compute"), event.name):
                message = (
                    f"`{event.name}` is no state of the metric: `reset` leaves it as it is, and ranks do not sum it up"
                )
                yield Fault.of(event, message, tier=None if event.where.phase else Tier.WARNING)


def _counts(event: AttributeSet) -> bool:
    """Whether an attribute is counted up, from nothing at first."""
    before, now = event.before, event.value
    from_nothing = is_constant(before, 0, 0.0) or (isinstance(before, Tensor) and before.origin is not None)
    return from_nothing and not isinstance(now, Constant)


def _reads(function: Value | None, name: str) -> bool:
    """Whether a method looks at an attribute of its object."""
    nodes = ast.walk(function.node) if isinstance(function, Function) else ()
    return any(isinstance(each, ast.Attribute) and each.attr == name for each in nodes)
