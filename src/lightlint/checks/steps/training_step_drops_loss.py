from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Configured, LossComputed, StepReturned
from lightlint.explore.queries import in_sight, inside, sure
from lightlint.facts.bindings import dotted_name
from lightlint.facts.hooks import TRAINING_STEP, Hook, Owner
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_BY_HAND = {"backward", "manual_backward", "optimizers", "optimizer_step", "training_step_end"}
_MAY_TRAIN = re.compile(r"optimi[sz]e|learn|^fit|^train_(?:step|batch|on)|(?:^|_)step$|^update", re.IGNORECASE)
_LIBRARIES = ("torch.", "lightning.", "builtins.", "torchmetrics.")


class TrainingStepDropsLoss(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        if function.name.value != TRAINING_STEP or self._may_give(function):
            return
        node = self.tree.class_of(function)
        if (
            node is None
            or self.hooks.of(function) != Hook(Owner.MODULE, TRAINING_STEP)
            or not self._has_optimizer(node)
        ):
            return
        flow = self.facts.flow(function)
        facts = self.facts.optimization
        family = facts.family(node)
        if not family or any(map(self._is_by_hand, family)) or not flow.reaches(flow.start, [flow.end]):
            return
        if (
            any(map(self._may_train, facts.calls(node)))
            or facts.is_refined(node.name.value)
            or not facts.is_automatic(node)
        ):
            return
        if any(map(self._computes_loss, facts.reach(node, TRAINING_STEP))):
            self.report(
                function.name,
                "`training_step` computes a loss and never returns it: Lightning skips every batch, no weight changes",
            )

    def _may_give(self, function: cst.FunctionDef) -> bool:
        """Whether a step may return a loss, by itself or through its decorators, or says that it returns None."""
        words = [dotted_name(each.decorator).rpartition(".")[2] for each in function.decorators]
        if any(word not in {"override", "overrides"} for word in words):
            return True
        gives = any(each.value is not None for each in self.tree.own(function, cst.Return))
        return gives or bool(self.tree.own(function, cst.Yield))

    def _has_optimizer(self, node: cst.ClassDef) -> bool:
        """Whether the class is meant to be trained: its `configure_optimizers` returns something."""
        method = self.classes.method(node, "configure_optimizers")
        given = self.values.returns(method) if method is not None else []
        return any(each is not None and dotted_name(each) != "None" for each in given)

    def _is_by_hand(self, node: cst.ClassDef) -> bool:
        """Whether something in a class may run the backward pass or give Lightning the loss in another way."""
        attributes = any(each.attr.value in _BY_HAND for each in self.tree.within(node, cst.Attribute))
        return attributes or not _BY_HAND.isdisjoint(self.classes.methods(node))

    def _may_train(self, call: cst.Call) -> bool:
        """Whether code out of sight may train: by its name, or because it gets the module itself."""
        name = self.names.of(call.func) or ""
        if name.startswith(_LIBRARIES) or self.facts.optimization.callees(call):
            return False
        if any(self.classes.is_self(arg.value) for arg in call.args):
            return True
        func = call.func
        counts = isinstance(func, cst.Attribute) and self.values.is_module(func.value)
        return bool(_MAY_TRAIN.search(self.names.method(call))) and not counts

    def _computes_loss(self, function: cst.FunctionDef) -> bool:
        """Whether a function calls a loss of torch, or computes something that it calls a loss."""
        targets = [each for assign in self.tree.own(function, cst.Assign) for each in assign.targets]
        computed = [each.target for each in targets if not self._is_fixed(each)]
        named = any("loss" in self.names.key(each).lower() for each in computed)
        return named or any(self.facts.criteria.of(each) is not None for each in self.tree.own(function, cst.Call))

    def _is_fixed(self, target: cst.AssignTarget) -> bool:
        assign = self.tree.parent(target)
        return not isinstance(assign, cst.Assign) or not self.tree.within(assign.value, cst.Call)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Steps that compute a loss and give nothing, on each path, where Lightning is to train with it."""
        by_hand = any(event.via != "lightning" for event in entry.of(Backward))
        losses = any(inside(event.where, "training_step") for event in entry.of(LossComputed))
        trained = [event.module for event in entry.of(Configured) if event.automatic and event.optimizers]
        if by_hand or not losses or not trained:
            return
        for event in sure(entry, StepReturned, lambda each: is_constant(each.result, None) and not each.written):
            if in_sight([event.module]) and not self.facts.optimization.is_refined(event.module.name):
                message = "`training_step` computes a loss and never returns it: Lightning skips every batch, no weight changes"
                yield Fault.at(event, message)
