"""Losses that learn: modules with a parameter and no layers, whose result is a term of what is differentiated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.classes import NN_MODULE
from lightlint.facts.hooks import TRAINING_STEP, Hook, Owner

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_SUMMING = {"mean", "sum", "squeeze"}
# what is learned starts from these; a table of constants is meant to stay
_STARTS = re.compile(r"torch\.(?:zeros|ones|rand|randn|empty|full|FloatTensor|Tensor|\w+_like)$")
_SETTLED = {"requires_grad", "requires_grad_", "load_state_dict", "load", "eval", "register_parameter"}
_DEPTH = 5


def learned_parameter(facts: FileFacts, name: str) -> str:
    """The `nn.Parameter` that a module class of the project has beside no layers, where nothing fixes or loads it.

    Empty for any other class; see `FileFacts.of_class` for what it costs.
    """
    found = facts.of_class(name)
    return _parameter_of(*found) if found is not None else ""


def _parameter_of(facts: FileFacts, node: cst.ClassDef) -> str:
    if facts.classes.base_names(node) != (NN_MODULE,):
        return ""
    words = {each.attr.value for each in facts.tree.within(node, cst.Attribute)}
    words |= {arg.keyword.value for arg in facts.tree.within(node, cst.Arg) if arg.keyword is not None}
    calls = [each for each in facts.tree.within(node, cst.Call) if facts.gradients.makes_parameters(each)]
    if words & _SETTLED or any(facts.names.call(each) != "torch.nn.Parameter" for each in calls):
        return ""
    return next((kept for each in calls if (kept := _learned_as(facts, each))), "")


def _learned_as(facts: FileFacts, made: cst.Call) -> str:
    """The attribute that a parameter is kept under which starts as something to be learned."""
    first = made.args[0].value if len(made.args) == 1 else None
    starts = [facts.names.call(each) or "" for each in facts.tree.within(first, cst.Call)] if first is not None else []
    above = facts.tree.parent(made)
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    return target.attr.value if isinstance(target, cst.Attribute) and any(map(_STARTS.match, starts)) else ""


def is_term_of_loss(facts: FileFacts, call: cst.Call) -> bool:
    """Whether the result of a call is, or is added to, what a backward pass of its function starts from."""
    function = facts.tree.owner(call)
    if facts.gradients.may_be_off(call):
        return False
    starts: list[cst.BaseExpression | None] = []
    for each in facts.updates.own(function):
        if facts.loops.is_backward(each) and isinstance(each.func, cst.Attribute):
            starts.append(each.args[0].value if each.args else each.func.value)
    if isinstance(function, cst.FunctionDef) and facts.hooks.of(function) == Hook(Owner.MODULE, TRAINING_STEP):
        starts += [each.value for each in facts.tree.own(function.body, cst.Return)]
    return any(_adds(facts, each, call, 0) for each in starts)


def _adds(facts: FileFacts, value: cst.CSTNode | None, call: cst.Call, depth: int) -> bool:
    if value is call or depth > _DEPTH:
        return value is call
    parts: list[cst.CSTNode | None] = []
    match value:
        case cst.BinaryOperation():
            parts = [value.left, value.right]
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))) if method in _SUMMING:
            parts = [receiver]
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="scale")), args=[scaled]):
            parts = [scaled.value]
        case cst.Name():
            parts = [each.value for each in facts.reaching.bindings(value) if not each.path]
    return any(_adds(facts, each, call, depth + 1) for each in parts)
