"""Who optimizes a LightningModule: Lightning or its own `training_step`, and what that step does by hand.

Each answer is sure or it is no: a base out of sight, a flag that others set or read, a subclass that differs and a Fabric
loop all make it no.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.lightning.configured import Configured
from lightlint.facts.lightning.hooks import TRAINING_STEP, Hook, Owner
from lightlint.facts.objects.classes import MODULE, NN_MODULE
from lightlint.facts.project.mentions import occurs

if TYPE_CHECKING:
    from pathlib import Path

    from lightlint.facts.linked import Linked

FLAG = "automatic_optimization"
_STEP = Hook(Owner.MODULE, TRAINING_STEP)
_CALLED_BY_HAND = r"\b(?!self\b|super\b)\w+\.training_step\("  # a loop of the project's own
_OF_TENSORS = {"gradient", "retain_graph", "create_graph", "inputs"}
_HEIGHT = 8


class Optimization:
    """Automatic and manual optimization in one file."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._classes = facts.classes
        self._names = facts.names

    def is_automatic(self, node: cst.ClassDef | None) -> bool:
        """Whether Lightning surely runs the backward pass and the steps of a LightningModule."""
        if node is None or not self._classes.is_a(node, MODULE) or not self._classes.complete(node):
            return False
        if self._is_flag_shared or self._facts.fact(Configured).is_looped:
            return False
        return all(self._facts.training.automatic(each) is True for each in (node, *self.subclasses(node)))

    def is_manual(self, node: cst.ClassDef | None) -> bool:
        """Whether a LightningModule surely optimizes by hand, in whatever way it is made."""
        if node is None or self._facts.training.automatic(node) is not False:
            return False
        return not any(
            self._is_conditional(site) for each in self._classes.line(node) for site in self._flag_sites(each)
        )

    def subclasses(self, node: cst.ClassDef) -> list[cst.ClassDef]:
        """The classes of this file that derive from one."""
        return [each for each in self._tree.all(cst.ClassDef) if node in self._classes.line(each)[1:]]

    def is_refined(self, name: str) -> bool:
        """Whether other code may make a loss of what the `training_step` of a class, by name, gives."""
        here = [node for node in self._tree.all(cst.ClassDef) if node.name.value == name]
        ends = any(self._classes.has_method(node, "training_step_end") for node in here)
        called = any(self._names.method(call) == TRAINING_STEP for call in self._tree.all(cst.Call))
        return (
            ends
            or called
            or any(map(self.subclasses, here))
            or bool(self._users())
            or any(map(self._classes.heirs_elsewhere, here))
            or occurs(self._facts.project, TRAINING_STEP, _CALLED_BY_HAND)
        )

    def _users(self) -> tuple[Path, ...]:
        return self._facts.project.users(self._facts.path, TRAINING_STEP)

    def step_class(self, node: cst.CSTNode, depth: int = 0) -> cst.ClassDef | None:
        """The LightningModule whose method a node stands in, or alone calls its function, if a `training_step` runs that."""
        function = self._tree.function(node)
        if function is None or _STEP not in self._facts.hooks.reached(function):
            return None
        around = self._tree.class_of(function)
        if around is None and depth < _HEIGHT:
            calls = self._facts.hooks.calls_of.get(function, ())
            callers = {self.step_class(call, depth + 1) for call in calls}
            return callers.pop() if len(callers) == 1 else None
        return around if self._classes.is_a(around, MODULE) else None

    def reach(self, node: cst.ClassDef, hook: str) -> list[cst.FunctionDef]:
        """A hook of a class and the functions of this file it runs, `forward` for `self(...)` among them."""
        method = self._classes.method(node, hook)
        found = [method] if method is not None else []
        for each in found:
            for call in self._tree.own(each.body, cst.Call):
                for callee in self.callees(call):
                    if callee not in found:
                        found.append(callee)
        return found

    def callees(self, call: cst.Call) -> list[cst.FunctionDef]:
        """The functions of this file that a call can run, `forward` for `self(...)` among them."""
        return [*self._facts.hooks.callees(call), *self._forward(call)]

    def calls(self, node: cst.ClassDef, hook: str = TRAINING_STEP) -> list[cst.Call]:
        """The calls that a hook of a class makes, itself and through functions of this file."""
        return [call for each in self.reach(node, hook) for call in self._tree.own(each.body, cst.Call)]

    def raw_backward(self, call: cst.Call) -> cst.BaseExpression | None:
        """The tensor of `tensor.backward()`; None for any other call, such as an engine's `backward(loss)`."""
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "backward":
            return None
        keywords = [arg.keyword.value if arg.keyword else "" for arg in call.args]
        if any(keyword not in _OF_TENSORS for keyword in keywords):
            return None
        tensor = func.value
        if isinstance(tensor, cst.Attribute):
            return tensor if "loss" in tensor.attr.value.lower() and not self._facts.values.is_module(tensor) else None
        if isinstance(tensor, cst.Name):
            origin = self._facts.values.constructor(tensor)
            made = origin is not None and (
                self._classes.local(origin.name) is not None or self._classes.name_is_a(origin.name, NN_MODULE)
            )
            return None if made or not self._names.bindings.lookup(tensor) else tensor
        return tensor if isinstance(tensor, (cst.BinaryOperation, cst.Call, cst.Subscript)) else None

    def manual_backward(self, call: cst.Call) -> bool:
        """Whether a call is a LightningModule's `self.manual_backward(...)`."""
        return self._on_self(call, "manual_backward")

    def backwards(self, node: cst.ClassDef) -> list[cst.Call]:
        """The backward passes that the `training_step` of a class runs by hand."""
        calls = self.calls(node)
        return [each for each in calls if self.manual_backward(each) or self.raw_backward(each) is not None]

    def from_optimizers(self, expression: cst.CSTNode, depth: int = 0) -> bool:
        """Whether an expression is, or is an item of, what `self.optimizers()` gives."""
        match expression:
            case cst.Call():
                return self._facts.values.is_optimizers(expression)
            case cst.Subscript():
                return self.from_optimizers(expression.value, depth)
            case cst.Name() if depth < 4:
                found = self._names.bindings.lookup(expression)
                return bool(found) and all(
                    each.value is not None and self.from_optimizers(each.value, depth + 1) for each in found
                )
        return False

    def _on_self(self, call: cst.Call, method: str) -> bool:
        func = call.func
        return (
            isinstance(func, cst.Attribute)
            and func.attr.value == method
            and self._classes.is_self(func.value)
            and self._classes.is_a(self._tree.enclosing_class(call), MODULE)
        )

    def _forward(self, call: cst.Call) -> Iterator[cst.FunctionDef]:
        node = self._classes.self_class(call.func)
        method = self._classes.method(node, "forward") if node is not None else None
        if method is not None:
            yield method

    def _flag_sites(self, node: cst.ClassDef) -> Iterator[cst.CSTNode]:
        for target in self._tree.within(node, cst.AssignTarget):
            if isinstance(target.target, cst.Attribute) and target.target.attr.value == FLAG:
                yield target

    def _is_conditional(self, site: cst.CSTNode) -> bool:
        function = self._tree.function(site)
        if function is None:
            return False
        node = self._tree.class_of(function)
        called = node is not None and any(
            callee is function for each in self._inits(node) for callee in self._facts.hooks.reachable(each)
        )
        blocks = (cst.If, cst.For, cst.While, cst.Try, cst.Match)
        inside = [each for each in self._tree.ancestors(site) if self._tree.contains(function, each)]
        return not called or any(isinstance(each, blocks) for each in inside)

    def _inits(self, node: cst.ClassDef) -> list[cst.FunctionDef]:
        method = self._classes.method(node, "__init__")
        return [method] if method is not None else []

    @cached_property
    def _is_flag_shared(self) -> bool:
        """Whether code reads the flag, sets it on other objects, or a file that imports this one deals with it."""
        for attribute in self._tree.all(cst.Attribute):
            if attribute.attr.value == FLAG:
                is_set = isinstance(self._tree.parent(attribute), cst.AssignTarget)
                if not is_set or not self._classes.is_self(attribute.value):
                    return True
        return bool(self._facts.project.users(self._facts.path, FLAG))
