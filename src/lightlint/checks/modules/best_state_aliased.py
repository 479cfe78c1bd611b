from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.aliases import is_live_holder, live_state
from lightlint.fixes.edits import add_import, join, wrap

_TRAINING = re.compile(
    r"train|fit(?!ness)|backward|learn(?!er)|optimi[sz]e|finetune|run_epoch|one_epoch", re.IGNORECASE
)


class BestStateAliased(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        if len(assign.targets) != 1:
            return
        key = self.names.key(assign.targets[0].target)
        live = live_state(self.tree, self.names, assign.value) if key else None
        if live is None or not isinstance(live.func, cst.Attribute):
            return
        holder = live.func.value
        if not is_live_holder(self.values, self.classes, holder) or not self._is_used_late(assign, key, holder):
            return
        model = self.code.text_of(holder)
        self.report(
            assign.value,
            f"`{key}` is no copy: its tensors are the weights of `{model}`, which training goes on to change",
            repair=self._repair(assign.value),
        )

    def _is_used_late(self, assign: cst.Assign, key: str, holder: cst.BaseExpression) -> bool:
        """Whether the model is trained on between the assignment and a use of what it saved."""
        owner = self.tree.owner(assign)
        flow, model = self.facts.flow(owner), self.names.key(holder)
        parts = model.split(".")
        whole = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]  # `net` of `net.head`, too
        kills = [statement for name in (key, *whole) for statement in self._sets(owner, name)]
        events = [call for call in self.tree.own(owner, cst.Call) if self._changes(call, key, model)]
        events = [event for event in events if flow.reaches(assign, [event], avoiding=kills)]
        uses = list(self._uses(owner, key))
        written = [use for use in uses if self.names.call(use) == "torch.save"]
        same_turn = [use for use in written if self.tree.loops(use) == self.tree.loops(assign)]
        if any(flow.reaches(assign, [use], avoiding=[*kills, *events]) for use in same_turn):
            return False  # written while it is what it was
        if any(flow.reaches(event, uses, avoiding=kills) for event in events):
            return True
        return "." in key and self._is_kept_by_object(assign, key, model)

    def _is_kept_by_object(self, assign: cst.Assign, key: str, model: str) -> bool:
        """Whether a method keeps the best state in an attribute that other code loads later: an early stopper."""
        method, node = self.tree.function(assign), self.tree.enclosing_class(assign)
        if method is None or node is None or not key.startswith("self."):
            return False
        compared = [t for t, _ in self.facts.conditions(assign) if self.tree.within(t, cst.Comparison)]
        attribute = key.rpartition(".")[2]
        loads = [
            call
            for call in self.tree.all(cst.Call)
            if self.names.method(call) == "load_state_dict" and not self._follows(call, assign)
            if any(each.attr.value == attribute for arg in call.args for each in self.tree.within(arg, cst.Attribute))
        ]
        same = [
            call for call in loads if isinstance(call.func, cst.Attribute) and self.names.key(call.func.value) == model
        ]
        return bool(compared and loads) or (model.startswith("self.") and bool(same))

    def _follows(self, call: cst.Call, assign: cst.Assign) -> bool:
        """Whether a call runs behind an assignment within one run of the method that holds both."""
        owner = self.tree.owner(assign)
        return self.tree.owner(call) is owner and self.facts.flow(owner).reaches(assign, [call])

    def _sets(self, owner: cst.CSTNode, key: str) -> Iterator[cst.CSTNode]:
        """The statements that give a name another object."""
        for target in self.tree.own(owner, cst.AssignTarget):
            parts = target.target.elements if isinstance(target.target, (cst.Tuple, cst.List)) else [target]
            named = [each.value if isinstance(each, cst.BaseElement) else each.target for each in parts]
            statement = self.tree.statement(target)
            if statement is not None and any(self.names.key(each) == key for each in named):
                yield statement
        for loop in self.tree.own(owner, cst.For):
            if any(name.value == key for name in self.tree.within(loop.target, cst.Name)):
                yield loop

    def _changes(self, call: cst.Call, key: str, model: str) -> bool:
        """Whether a call changes the weights: an update, a load of other weights, or training out of sight."""
        method, func = self.names.method(call), call.func
        receiver = func.value if isinstance(func, cst.Attribute) else None
        if method == "load_state_dict":
            return self.names.key(receiver) == model and not self._mentions(call, key)
        if method == "step":
            return self.values.is_optimizer(receiver) or bool(re.search("opt", self.names.key(receiver), re.IGNORECASE))
        if self.loops.is_backward(call) or self.facts.steps.leads(call, self.loops.is_backward):
            return True
        if not _TRAINING.search(method) or self.names.key(receiver) == model:
            return False
        own = receiver is not None and self.classes.is_self(receiver) and model.startswith("self")
        return own or any(self.names.key(arg.value) == model for arg in call.args)

    def _uses(self, owner: cst.CSTNode, key: str) -> Iterator[cst.CSTNode]:
        for call in self.tree.own(owner, cst.Call):
            loads = self.names.method(call) == "load_state_dict" or self.names.call(call) == "torch.save"
            if loads and any(self._mentions(arg, key) for arg in call.args):
                yield call
        for statement in self.tree.own(owner, cst.Return):
            if statement.value is not None and self._returns(statement.value, key):
                yield statement

    def _returns(self, value: cst.BaseExpression, key: str) -> bool:
        parts = [each.value for each in value.elements] if isinstance(value, (cst.Tuple, cst.Dict)) else [value]
        return any(self.names.key(part) == key for part in parts)

    def _mentions(self, node: cst.CSTNode, key: str) -> bool:
        return any(self.names.key(each) == key for each in self.tree.within(node, cst.Name, cst.Attribute))

    def _repair(self, value: cst.BaseExpression) -> Repair:
        imported = add_import(self.code, self.tree.module, "copy")
        return Repair("copy the tensors", join(wrap(self.code, value, "copy.deepcopy(", ")"), imported))
