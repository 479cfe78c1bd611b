from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.lightning.hooks import ONCE_PER_NODE
from lightlint.facts.objects.classes import DATA_MODULE, MODULE
from lightlint.facts.project.mentions import is_called_elsewhere
from lightlint.facts.ranks.trainers import lightning_ranks
from lightlint.facts.ranks.world import Ranks
from lightlint.finding import Tier


class PrepareDataAssignsState(Check):
    def stands(self) -> bool:
        return lightning_ranks(self.facts) is not Ranks.ONE

    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        hook = self.hooks.of(function)
        node = self.tree.class_of(function)
        if hook is None or hook.name not in ONCE_PER_NODE or node is None:
            return
        if (
            not self.classes.is_a(node, MODULE, DATA_MODULE)
            or not self.classes.complete(node)
            or self._is_called(function)
        ):
            return
        once = self._run_once(function)
        for target in self._assigned(once):
            name = target.attr.value
            reader = self._reader(node, once, name)
            if reader is not None and not self._is_set_elsewhere(node, once, name):
                self.report(
                    target,
                    f"`self.{name}` is set by one process of each node, and `{reader}` reads it in all",
                    tier=Tier.NOTE if self.facts.world.is_untold else None,
                )

    def _is_called(self, function: cst.FunctionDef) -> bool:
        """Whether other code, of this file or another, calls the hook itself, on whichever ranks."""
        name = function.name.value
        own = (each for each in self.tree.all(cst.Call) if self.names.method(each) == name and not self._is_super(each))
        named = bool(self.hooks.calls_of.get(function)) or any(True for _ in own)
        return named or is_called_elsewhere(self.facts.project, self.facts.source, name)

    def _is_super(self, call: cst.Call) -> bool:
        return isinstance(call.func, cst.Attribute) and self.names.call(call.func.value) == "builtins.super"

    def _run_once(self, function: cst.FunctionDef) -> list[cst.FunctionDef]:
        """The hook, and the methods that only the hook calls, directly or through another of them."""
        found = [function]
        for each in found:
            for call in self.tree.own(each.body, cst.Call):
                own = isinstance(call.func, cst.Attribute) and self.classes.is_self(call.func.value)
                helper = self.hooks.callee(call) if own else None
                if helper is not None and helper not in found and self._is_only_for(helper, found):
                    found.append(helper)
        return found

    def _is_only_for(self, helper: cst.FunctionDef, callers: list[cst.FunctionDef]) -> bool:
        """Whether a helper is private, and named nowhere else: any script may call a public one on every rank."""
        name = helper.name.value
        named = [each for each in self.tree.all(cst.Attribute) if each.attr.value == name]
        return name.startswith("_") and all(self.tree.function(each) in callers for each in named)

    def _assigned(self, once: list[cst.FunctionDef]) -> list[cst.Attribute]:
        """The first plain assignment to each attribute of `self` in a hook and its helpers."""
        found: dict[str, cst.Attribute] = {}
        for assign in (each for function in once for each in self.tree.own(function, cst.Assign, cst.AnnAssign)):
            targets = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else [assign.target]
            parts = [part for each in targets for part in self._parts(each)]
            for part in parts:
                if isinstance(part, cst.Attribute) and self.classes.is_self(part.value):
                    found.setdefault(part.attr.value, part)
        return list(found.values())

    def _parts(self, target: cst.BaseExpression) -> list[cst.BaseExpression]:
        if isinstance(target, (cst.Tuple, cst.List)):
            return [part for element in target.elements for part in self._parts(element.value)]
        return [target]

    def _reader(self, node: cst.ClassDef, once: list[cst.FunctionDef], name: str) -> str | None:
        """A method that reads an attribute and runs on every rank: a hook, or a helper that one calls."""
        for method in self.classes.methods(node).values():
            hooks = {hook.name for hook in self.hooks.reached(method)} - ONCE_PER_NODE
            if (
                method not in once
                and hooks
                and any(
                    each.attr.value == name and self._is_read(each)
                    for each in self.tree.within(method.body, cst.Attribute)
                )
            ):
                return method.name.value
        return None

    def _is_read(self, attribute: cst.Attribute) -> bool:
        return self.classes.is_self(attribute.value) and not isinstance(self.tree.parent(attribute), cst.AssignTarget)

    def _is_set_elsewhere(self, node: cst.ClassDef, once: list[cst.FunctionDef], name: str) -> bool:
        """Whether the class, another method or a base may set an attribute too, or answers for missing ones."""
        words = {"__getattr__", "__getattribute__", name}
        if any(self.classes.has_method(node, word) for word in words):
            return True
        values = self.classes.attribute_values(node, name)
        stores = [each for each in self.tree.all(cst.Attribute) if each.attr.value == name and self._is_stored(each)]
        sites = [*values, *(each for each in stores if not self._is_of_another(each, node))]
        told = any(not any(self.tree.contains(function, site) for function in once) for site in sites)
        spelled = {text.evaluated_value for text in self.tree.within(node, cst.SimpleString)}
        return told or name in spelled or self._inherits(node, name)

    def _is_of_another(self, attribute: cst.Attribute, node: cst.ClassDef) -> bool:
        """Whether an attribute is of the `self` of a class that has nothing to do with this one."""
        other = self.classes.self_class(attribute.value)
        if other is None or other is node:
            return False
        mine, theirs = self.names.defined(node), self.names.defined(other)
        return theirs not in self.classes.ancestors(node) and mine not in self.classes.ancestors(other)

    def _is_stored(self, attribute: cst.Attribute) -> bool:
        parent = self.tree.parent(attribute)
        return isinstance(parent, (cst.AssignTarget, cst.AnnAssign, cst.Element)) and not (
            isinstance(parent, cst.AnnAssign) and parent.target is not attribute
        )

    def _inherits(self, node: cst.ClassDef, name: str) -> bool:
        above = [self.classes.local(each) for each in self.classes.ancestors(node)]
        outside = any(
            local is None and not each.startswith(("lightning.", "torch.", "builtins.", "abc."))
            for each, local in zip(self.classes.ancestors(node), above, strict=True)
        )
        return outside or any(each is not None and self.classes.attribute_values(each, name) for each in above)
