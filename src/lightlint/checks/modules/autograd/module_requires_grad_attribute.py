from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.code.bindings import Kind
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, RawEdit

_CHILDREN: dict[str, tuple[int, ...]] = {"children": (), "modules": (), "named_children": (1,), "named_modules": (1,)}
_PARTS = {"fc", "features", "classifier", "conv1", "bn1", "layer1", "layer2", "layer3", "layer4"}

_VISION = re.compile(
    r"torchvision\.models\.(?:\w+\.)?(?:wide_)?(?:resne(?:t|xt)|densenet|mobilenet|efficientnet|vgg|alexnet|googlenet|"
    r"inception|shufflenet|squeezenet|mnasnet|regnet)\w*$"
)


class ModuleRequiresGradAttribute(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        if len(assign.targets) != 1:
            return
        target = assign.targets[0].target
        if not isinstance(target, cst.Attribute) or target.attr.value != "requires_grad":
            return
        if not self._is_module(target.value) or self._knows_it(target.value):
            return
        receiver = self.code.text_of(target.value)
        self.report(
            target,
            f"`requires_grad` of a module is an attribute that nothing reads: the parameters of `{receiver}` stay as they are",
            repair=self._repair(assign, receiver),
        )

    def _is_module(self, value: cst.BaseExpression) -> bool:
        """Whether a value surely is a module: by constructor, as a model of torchvision or a part of one, as a child."""
        if self.values.is_module(value) or self._is_vision(value):
            return True
        if isinstance(value, cst.Attribute):
            return value.attr.value in _PARTS and self._is_vision(value.value)
        found = self.facts.reaching.bindings(value) if isinstance(value, cst.Name) else []
        return bool(found) and all(each.kind is Kind.LOOP and self._is_child(each.value, each.path) for each in found)

    def _is_child(self, drawn: cst.BaseExpression | None, path: tuple[int, ...]) -> bool:
        """Whether a loop draws modules at a place: `child` of `enumerate(net.children())` and of `net.named_children()`."""
        if self.names.call(drawn) == "builtins.enumerate" and isinstance(drawn, cst.Call) and path[:1] == (1,):
            drawn, path = drawn.args[0].value, path[1:]
        return path == _CHILDREN.get(self.names.method(drawn))

    def _is_vision(self, value: cst.BaseExpression) -> bool:
        origins = self.values.origins(value)
        return bool(origins) and all(_VISION.match(origin.name) for origin in origins)

    def _knows_it(self, module: cst.BaseExpression) -> bool:
        """Whether the module's class has a meaning for the attribute: a property, or code that reads it."""
        origins = self.values.origins(module)
        local = [node for each in origins if (node := self.classes.local(each.name)) is not None]
        outside = any(not self.classes.local(o.name) and not o.name.startswith(("torch", "timm")) for o in origins)
        return outside or any(
            self.classes.is_self(each.value) and each.attr.value == "requires_grad"
            for node in local
            for each in self.tree.within(node, cst.Attribute)
        ) or any(self.classes.has_method(node, "requires_grad") for node in local)  # fmt: skip

    def _repair(self, assign: cst.Assign, receiver: str) -> Repair | None:
        line = self.tree.parent(assign)
        if not isinstance(line, cst.SimpleStatementLine) or self.names.constant(assign.value) not in (True, False):
            return None
        value = self.code.text_of(assign.value)
        call = RawEdit(*self.facts.span(assign), f"{receiver}.requires_grad_({value})")
        return Repair("call `requires_grad_()`", Draft((call,)), Applicability.UNSAFE)
