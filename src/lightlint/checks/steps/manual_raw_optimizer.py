from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured, Stepped
from lightlint.explore.queries import in_sight, inside
from lightlint.facts.names import UNKNOWN

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ManualRawOptimizer(Check):
    def visit_Call(self, call: cst.Call) -> None:
        facts = self.facts.optimization
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "step" or not self._is_raw(func.value):
            return
        node = facts.step_class(call)
        if (
            node is None
            or not facts.is_manual(node)
            or not facts.family(node)
            or not self.facts.lightning.may_be_at_least("1.6")
        ):
            return
        steps = [each for each in facts.calls(node) if self.names.method(each) == "step"]
        if all(isinstance(each.func, cst.Attribute) and self._is_raw(each.func.value) for each in steps):
            name = self.code.text_of(func.value)
            self.report(call, f"Lightning does not see a step of the bare `{name}`: `trainer.global_step` stays 0")

    def _is_raw(self, receiver: cst.BaseExpression) -> bool:
        """Whether an expression surely is a torch optimizer without Lightning's wrapper around it."""
        if self._is_unwrapped(receiver) or self._is_trainers(receiver):
            return True
        if isinstance(receiver, cst.Name):
            values = [each.value for each in self.names.bindings.lookup(receiver)]
            return bool(values) and all(isinstance(each, cst.Attribute) and self._is_raw(each) for each in values)
        if not isinstance(receiver, (cst.Attribute, cst.Subscript)) or not self.values.is_optimizer(receiver):
            return False
        held = receiver.value if isinstance(receiver, cst.Subscript) else receiver
        node = self.classes.self_class(held.value) if isinstance(held, cst.Attribute) else None
        if node is None or not isinstance(held, cst.Attribute):
            return False
        sources = self.classes.attribute_sources(node, held.attr.value)
        return not any(value is None or self.facts.optimization.from_optimizers(value) for value, _ in sources)

    def _is_trainers(self, receiver: cst.CSTNode) -> bool:
        """Whether an expression is an item of `self.trainer.optimizers`."""
        if isinstance(receiver, cst.Name):
            found = self.names.bindings.lookup(receiver)
            return bool(found) and all(each.value is not None and self._is_trainers(each.value) for each in found)
        held = receiver.value if isinstance(receiver, cst.Subscript) else receiver
        owner = held.value if isinstance(held, cst.Attribute) and held.attr.value == "optimizers" else None
        return isinstance(owner, cst.Attribute) and owner.attr.value == "trainer" and self.classes.is_self(owner.value)

    def _is_unwrapped(self, receiver: cst.BaseExpression) -> bool:
        """Whether an expression is, or is an item of, `self.optimizers(use_pl_optimizer=False)`."""
        if isinstance(receiver, cst.Subscript):
            return self._is_unwrapped(receiver.value)
        if isinstance(receiver, cst.Name):
            values = [each.value for each in self.names.bindings.lookup(receiver)]
            return bool(values) and all(value is not None and self._is_call(value) for value in values)
        return self._is_call(receiver)

    def _is_call(self, value: cst.CSTNode) -> bool:
        if not isinstance(value, cst.Call) or not self.values.is_optimizers(value):
            return False
        given = self.names.argument(value, "use_pl_optimizer", 0)
        return (self.names.constant(given.value) if given else UNKNOWN) is False

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Steps past Lightning's counter, in a module that optimizes by hand."""
        for path in entry.paths:
            given = {each for event in path.of(Configured) if not event.automatic for each in event.optimizers}
            counted = any(event.via == "lightning optimizer" for event in path.of(Stepped))
            for event in path.of(Stepped) if not counted else []:
                bare = event.optimizer in given and event.via == "direct" and in_sight([event.optimizer])
                if bare and inside(event.where, "training_step"):
                    message = "Lightning does not see a step of the bare optimizer: `trainer.global_step` stays 0"
                    yield Fault.at(event, message)
