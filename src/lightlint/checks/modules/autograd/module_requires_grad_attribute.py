from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import AttributeSet
from lightlint.facts.code.bindings import Kind
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, RawEdit
from lightlint.values.core import Class, Constant, Library, Value
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_NAME = "requires_grad"
_CHILDREN: dict[str, tuple[int, ...]] = {"children": (), "modules": (), "named_children": (1,), "named_modules": (1,)}
_PARTS = re.compile(
    r"fc|features|classifier|backbone|(?:en|de)coder|(?:conv|bn|layer)\d|bert|roberta|transformer|embeddings"
)
_WITHOUT = (
    "torch.",
    "torchvision.",
    "timm.",
    "lightning.",
    "transformers.",
    "diffusers.",
)  # libraries whose modules have no such attribute


class ModuleRequiresGradAttribute(Check):
    asks_rest = frozenset([_NAME])

    def visit_Assign(self, assign: cst.Assign) -> None:
        """Children of a model out of sight, which a loop draws."""
        target = assign.targets[0].target
        if len(assign.targets) != 1 or not isinstance(target, cst.Attribute) or target.attr.value != _NAME:
            return
        found = self.facts.reaching.bindings(target.value) if isinstance(target.value, cst.Name) else []
        if found and all(each.kind is Kind.LOOP and self._is_child(each.value, each.path) for each in found):
            of = self.code.text_of(target.value)
            self.report(target, _message(of), repair=self._repair(target))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.of(AttributeSet):
            if event.name == _NAME and _is_module(event.object) and not (_has(event.object.cls) or _is_so(event)):
                target = self.node_of(event.site)
                of = self.code.text_of(target.value) if isinstance(target, cst.Attribute) else "the module"
                yield Fault.of(event, _message(of))

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        return self._repair(node)

    def _is_child(self, drawn: cst.BaseExpression | None, path: tuple[int, ...]) -> bool:
        """Whether a loop draws modules at a place: `child` of `enumerate(net.children())` and of `net.named_children()`."""
        if self.names.call(drawn) == "builtins.enumerate" and isinstance(drawn, cst.Call) and path[:1] == (1,):
            drawn, path = drawn.args[0].value, path[1:]
        return path == _CHILDREN.get(self.names.method(drawn))

    def _repair(self, target: cst.CSTNode) -> Repair | None:
        assign = self.tree.statement(target)
        if not isinstance(target, cst.Attribute) or not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
            return None
        line = self.tree.parent(assign)
        if not isinstance(line, cst.SimpleStatementLine) or self.names.constant(assign.value) not in (True, False):
            return None
        receiver, value = (self.code.text_of(each) for each in (target.value, assign.value))
        call = RawEdit(*self.facts.span(assign), f"{receiver}.requires_grad_({value})")
        return Repair("call `requires_grad_()`", Draft((call,)), Applicability.UNSAFE)


def _message(of: str) -> str:
    what = f"the parameters of `{of}`" if of != "the module" else "its parameters"
    return f"`requires_grad` of a module is an attribute that nothing reads: {what} stay as they are"


def _is_module(value: Value) -> TypeGuard[Module]:
    """Whether a value surely is a module: one that is made, or a part of one out of sight that is called like a module."""
    return isinstance(value, Module) and (value.whole is None or _PARTS.fullmatch(value.name) is not None)


def _is_so(event: AttributeSet) -> bool:
    """Whether all parameters of a module come to what it was set to in another way: each for itself, or it has none."""
    module, wanted = event.object, event.value
    if not isinstance(module, Module) or not module.sees_all() or not isinstance(wanted, Constant):
        return False
    return all(each.requires_grad is bool(wanted.value) for each in module.parameters())


def _has(cls: Value) -> bool:
    """Whether a class may have a meaning for the attribute: it names it, or is out of sight."""
    lineage = cls.lineage() if isinstance(cls, Class) else [cls]
    return any(
        _names_it(each.node) or _NAME in each.names if isinstance(each, Class) else not _is_without(each)
        for each in lineage
    )


def _names_it(node: ast.ClassDef) -> bool:
    """Whether a class reads the attribute of itself."""
    found = (each for each in ast.walk(node) if isinstance(each, ast.Attribute) and each.attr == _NAME)
    return any(isinstance(each.value, ast.Name) and each.value.id == "self" for each in found)


def _is_without(base: Value) -> bool:
    return isinstance(base, Library) and base.path.startswith(_WITHOUT)
