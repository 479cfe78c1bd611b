"""Which calls change the weights of a model, and which names stand for a model that training goes on to change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.checks.modules.state.best_state_aliased.aliases import rebinding

if TYPE_CHECKING:
    from lightlint.facts.code.flow import Flow
    from lightlint.facts.file import FileFacts

TRAINING = re.compile(r"train|fit(?!ness)|backward|learn(?!er)|optimi[sz]e|finetune|run_epoch|one_epoch", re.IGNORECASE)
_UPDATE = re.compile(r"\bstep\b|optim|-=|\.(?:add|sub|mul|copy|addc\w+)_\(|set_\(", re.IGNORECASE)
_BETTER = (cst.LessThan, cst.GreaterThan, cst.LessThanEqual, cst.GreaterThanEqual)
_OF_MODULES = {"parameters", "state_dict", "eval"}
_MOVING = {"to", "cuda"}
_WRITING = re.compile("save|dump|copy|export", re.IGNORECASE)


class ChangedWeights:
    """The changes of weights in one file. Models are told by their key in the function that changes them."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names
        self._tree = facts.tree

    def changes(self, call: cst.Call, key: str, model: str) -> bool:
        """Whether a call changes the weights: an update, a load of other weights than `key`, or training out of sight."""
        method, func = self._names.method(call), call.func
        receiver = func.value if isinstance(func, cst.Attribute) else None
        if method == "load_state_dict":
            return self._names.key(receiver) == model and not self.mentions(call, key)
        if method == "step":
            known = self._facts.values.is_optimizer(receiver)
            return known or bool(re.search("opt", self._names.key(receiver), re.IGNORECASE))
        backward = self._facts.loops.is_backward
        if backward(call) or (self._facts.steps.leads(call, backward) and not self._trains_another(call, model)):
            return bool(_UPDATE.search(self._facts.source.text))  # gradients alone change no weights
        if not TRAINING.search(method) or self._names.key(receiver) == model:
            return False
        own = receiver is not None and self._facts.classes.is_self(receiver) and model.startswith("self")
        return own or any(self._names.key(arg.value) == model for arg in call.args)

    def _trains_another(self, call: cst.Call, model: str) -> bool:
        """Whether a helper that trains is handed a module, and it is not the one asked for, nor what holds that."""
        whole = model.partition(".")[0]
        nets = [arg.value for arg in call.args if self._is_net(arg)]
        if not nets or whole == "self" or any(self.mentions(arg, whole) for arg in call.args):
            return False
        roots = {self._names.key(each).partition(".")[0] for net in nets for each in self._tree.within(net, cst.Name)}
        return not any(self._are_tied(assign, whole, roots) for assign in self._tree.all(cst.Assign))

    def _are_tied(self, assign: cst.Assign, whole: str, roots: set[str]) -> bool:
        """Whether one network is made of another, as a wrapper and what it wraps are."""
        bound = {self._names.key(each.target) for each in assign.targets}
        made = bound & roots and self.mentions(assign.value, whole)
        return bool(made) or (whole in bound and any(self.mentions(assign.value, root) for root in roots))

    def _is_net(self, arg: cst.Arg) -> bool:
        keyword = arg.keyword.value if arg.keyword is not None else ""
        return keyword in {"net", "model", "network"} or self._facts.values.is_module(arg.value)

    def rebound(self, owner: cst.CSTNode, key: str, model: str) -> list[cst.CSTNode]:
        """The statements that give what is kept, the model, or what holds it (`net` of `net.head`) another object."""
        parts = model.split(".")
        whole = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        bound = [statement for name in (key, *whole) for statement in rebinding(self._tree, self._names, owner, name)]
        return [*bound, *self._filled(owner, key)]

    def _filled(self, owner: cst.CSTNode, key: str) -> Iterator[cst.CSTNode]:
        """Where other weights are put into the state that is kept, or may be by who is handed it: a partial load.

        That is the whole loop where one fills it key by key.
        """
        for node in self._tree.own(owner, cst.Name, cst.Attribute):
            if self._names.key(node) == key and (writes := self._write_into(node)) is not None:
                loops = [each for each in self._tree.loops(writes) if self._is_over_keys(each)]
                yield loops[-1] if loops else writes

    def _is_over_keys(self, loop: cst.CSTNode) -> bool:
        """Whether a loop trains nothing, and so may go over the keys of a state."""
        steps = self._facts.steps
        calls = self._tree.within(loop, cst.Call)
        return not any(
            TRAINING.search(self._names.method(each)) or steps.leads(each, self._facts.loops.is_backward)
            for each in calls
        )

    def _write_into(self, kept: cst.Name | cst.Attribute) -> cst.CSTNode | None:
        """The statement or call that a mention of a state is part of and that may change what it holds."""
        above = self._tree.parent(kept)
        call = self._tree.parent(above) if above is not None else None
        if isinstance(above, cst.Attribute) and above.attr.value == "update" and isinstance(call, cst.Call):
            return call
        if isinstance(above, cst.Arg) and isinstance(call, cst.Call):
            name = self._names.call(call) or ""
            reads = name.startswith(("builtins.", "copy.", "torch.", "collections."))
            method = self._names.method(call)
            return None if reads or method == "load_state_dict" or _WRITING.search(method) else call
        if isinstance(above, cst.Subscript) and above.value is kept:
            around = call
            if isinstance(around, cst.AssignTarget):
                return self._tree.statement(around)
            written = isinstance(around, cst.Attribute) and around.attr.value.endswith("_")
            return self._tree.statement(above) if written else None
        return None

    def moves_first_later(self, statement: cst.CSTNode, model: str) -> bool:
        """Whether a model, or what is made of it, is first moved behind a statement: on a GPU its weights are new tensors then."""
        owner = self._tree.owner(statement)
        moves = [
            call
            for call in self._tree.own(owner, cst.Call)
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in _MOVING
            if self.mentions(call.func.value, model)
        ]
        flow = self._facts.flow(owner)
        return any(flow.reaches(statement, [each]) and not flow.reaches(each, [statement]) for each in moves)

    def is_alias_of_best(self, assign: cst.Assign, target: cst.CSTNode, source: cst.BaseExpression) -> bool:
        """Whether `best = model` keeps, where something got better, a module that is trained on before `best` is used."""
        key, model = self._names.key(target), self._names.key(source)
        if "best" not in key.rpartition(".")[2] or not model or key == model or not self._tree.loops(assign):
            return False
        owner = self._tree.owner(assign)
        flow = self._facts.flow(owner)
        tests = [test for test, outcome in self._facts.conditions(assign) if outcome]
        operators = [each.operator for test in tests for each in self._tree.within(test, cst.ComparisonTarget)]
        if not any(isinstance(each, _BETTER) for each in operators) or not self._is_module(owner, source, model):
            return False
        kills = self.rebound(owner, key, model)
        calls = self._tree.own(owner, cst.Call)
        events = [each for each in calls if self.changes(each, key, model)]
        events = [each for each in events if flow.reaches(assign, [each], avoiding=kills)]
        renewed = [
            each
            for each in calls
            if self._names.method(each) == "load_state_dict"
            if isinstance(each.func, cst.Attribute) and self._names.key(each.func.value) in {key, model}
        ]
        if not events or self._is_written(assign, key, model, flow):
            return False
        uses = [each for each in self._tree.own(owner, cst.Name, cst.Attribute) if self._is_use(each, key)]
        return any(flow.reaches(each, uses, avoiding=[*kills, *renewed]) for each in events)

    def _is_module(self, owner: cst.CSTNode, source: cst.BaseExpression, model: str) -> bool:
        """Whether a value surely is a module, and the same one in each iteration."""
        node = self._tree.enclosing_class(source) if model.startswith("self.") else None
        stores = self._tree.within(node, cst.AssignTarget) if node is not None else []
        makers = [self._tree.owner(each) for each in stores if self._names.key(each.target) == model]
        if any(isinstance(each, cst.FunctionDef) and each.name.value != "__init__" for each in makers):
            return False
        asked = {
            self._names.key(call.func.value)
            for call in self._tree.own(owner, cst.Call)
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in _OF_MODULES and not call.args
        }
        return self._facts.values.is_module(source) or model in asked

    def _is_written(self, assign: cst.Assign, key: str, model: str, flow: Flow) -> bool:
        """Whether the same turn writes or copies the weights, which may be what is used in the end."""
        loop = self._tree.loops(assign)[0]
        writes = [
            call
            for call in self._tree.own(loop.body, cst.Call)
            if _WRITING.search(self._names.method(call)) and (self.mentions(call, key) or self.mentions(call, model))
            if not self._tree.contains(assign, call)
        ]
        ways = ((assign, each) for each in writes)
        return any(
            flow.reaches_in_same_iteration(loop, one, [other]) or flow.reaches_in_same_iteration(loop, other, [one])
            for one, other in ways
        )

    def _is_use(self, node: cst.Name | cst.Attribute, key: str) -> bool:
        above = self._tree.parent(node)
        if isinstance(above, (cst.AssignTarget, cst.Comparison, cst.ComparisonTarget, cst.AnnAssign, cst.Del)):
            return False
        if isinstance(above, cst.Element) and isinstance(
            self._tree.parent(self._tree.parent(above) or above), cst.AssignTarget
        ):
            return False
        return self._names.key(node) == key

    def mentions(self, node: cst.CSTNode, key: str) -> bool:
        """Whether a name, or attribute, stands anywhere in a node."""
        named = (each for each in self._tree.within(node, cst.Name, cst.Attribute) if not self._names.is_word(each))
        return any(self._names.key(each) == key for each in named)
