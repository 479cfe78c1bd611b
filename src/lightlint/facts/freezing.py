"""What switches the gradients of a module's parameters on or off, in place or through a method of the module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import dotted_name

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_GOING_OVER = {"parameters", "named_parameters"}


@dataclass(frozen=True, slots=True)
class Switch:
    """A place that sets `requires_grad`: of which module, or of the parameters of which, and to what as it is spelled."""

    module: cst.BaseExpression
    state: str


def switch(facts: FileFacts, node: cst.Assign | cst.Call) -> Switch | None:
    """`module.requires_grad_(...)`, `p.requires_grad = ...` in a loop over a module's parameters."""
    if isinstance(node, cst.Call):
        func = node.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "requires_grad_":
            return None
        state = dotted_name(node.args[0].value) if node.args else "True"
        return Switch(_gone_over(facts, func.value) or func.value, state)
    target = node.targets[0].target if len(node.targets) == 1 else None
    if not isinstance(target, cst.Attribute) or target.attr.value != "requires_grad":
        return None
    module = _gone_over(facts, target.value)
    return Switch(module, dotted_name(node.value)) if module is not None else None


def _gone_over(facts: FileFacts, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """The module whose parameters a loop goes over, with a name for each of them."""
    for loop in facts.tree.loops(value) if isinstance(value, cst.Name) else ():
        named = any(each.value == dotted_name(value) for each in facts.tree.within(loop, cst.Name))
        drawn = loop.iter if isinstance(loop, cst.For) and named else None
        if isinstance(drawn, cst.Call) and facts.names.method(drawn) in _GOING_OVER:
            return drawn.func.value if isinstance(drawn.func, cst.Attribute) else None
    return None


def switched_by(facts: FileFacts, call: cst.Call, method: cst.FunctionDef) -> list[Switch]:
    """What a call of a module's method surely switches of its own parts, or of the module as a whole."""
    found: list[Switch] = []
    for node in facts.tree.own(method.body, cst.Assign, cst.Call):
        made = switch(facts, node)
        root = made.module if made is not None else None
        while isinstance(root, (cst.Attribute, cst.Subscript)):
            root = root.value
        if made is None or root is None or not facts.classes.is_self(root) or facts.conditions(node):
            continue
        given = facts.values.given(method, call, made.state) if made.state not in {"True", "False"} else None
        found.append(Switch(made.module, dotted_name(given) if given is not None else made.state))
    return found


def freezes(facts: FileFacts, owner: cst.FunctionDef | cst.Module, root: str) -> list[cst.CSTNode]:
    """Where a function freezes a module of some name or a part of it, itself or through a method of it."""
    found: list[cst.CSTNode] = []
    for node in facts.tree.own(owner, cst.Assign, cst.Call):
        made = switch(facts, node)
        if made is not None:
            if made.state == "False" and f"{dotted_name(made.module)}.".startswith(f"{root}."):
                found.append(node)
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            method = facts.steps.callee(node) if dotted_name(node.func.value) == root else None
            if method is not None and any(each.state == "False" for each in switched_by(facts, node, method)):
                found.append(node)
    return found
