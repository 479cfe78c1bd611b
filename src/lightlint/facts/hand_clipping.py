"""Gradients clipped by hand: `for p in net.parameters(): p.grad.data.clamp_(-1, 1)`."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.names import Names
from lightlint.facts.tree import Tree

_IN_PLACE = {"clamp_", "clip_"}
_NEW = {"clamp", "clip"}
_FUNCTIONS = {f"torch.{name}" for name in (*_IN_PLACE, *_NEW)}
_PARAMETERS = {"parameters", "named_parameters"}


def hand_clip(tree: Tree, names: Names, call: cst.Call) -> cst.For | None:
    """The loop over a module's parameters in which a call clamps their gradients, and which does nothing else with them."""
    if names.method(call) not in _IN_PLACE | _NEW:
        return None
    parameter = _parameter(_clamped(names, call))
    loop = next((each for each in tree.loops(call) if isinstance(each, cst.For)), None)
    if parameter is None or loop is None or not isinstance(tree.parent(loop), cst.BaseSuite | cst.Module):
        return None
    taken = {name.value for name in tree.within(loop.target, cst.Name)}
    if names.method(loop.iter) not in _PARAMETERS or parameter.value not in taken or not _is_kept(tree, names, call):
        return None
    statement = tree.statement(call)
    others = [
        each
        for each in tree.within(loop, cst.Attribute)
        if each.attr.value == "grad" and not (statement is not None and tree.contains(statement, each))
    ]
    return loop if all(_is_asked_for(tree, each) for each in others) else None


def _clamped(names: Names, call: cst.Call) -> cst.CSTNode | None:
    """What a call clamps: `g` of `g.clamp_(-1, 1)` and of `torch.clamp(g, -1, 1)`."""
    if names.call(call) in _FUNCTIONS:
        given = names.argument(call, "input", 0)
        return given.value if given is not None else None
    return call.func.value if isinstance(call.func, cst.Attribute) else None


def _parameter(gradient: cst.CSTNode | None) -> cst.Name | None:
    """`p` of `p.grad` and `p.grad.data`."""
    if isinstance(gradient, cst.Attribute) and gradient.attr.value == "data":
        gradient = gradient.value
    if not isinstance(gradient, cst.Attribute) or gradient.attr.value != "grad":
        return None
    return gradient.value if isinstance(gradient.value, cst.Name) else None


def _is_kept(tree: Tree, names: Names, call: cst.Call) -> bool:
    """Whether the clamped values become the gradient: in place, or by an assignment of the new tensor to it."""
    above = tree.parent(call)
    if names.method(call) in _IN_PLACE:
        return isinstance(above, cst.Expr)
    targets = above.targets if isinstance(above, cst.Assign) else ()
    return len(targets) == 1 and _parameter(targets[0].target) is not None


def _is_asked_for(tree: Tree, gradient: cst.Attribute) -> bool:
    """Whether a gradient is only looked at for whether there is one: `if p.grad is not None`."""
    return isinstance(tree.parent(gradient), (cst.Comparison, cst.If))
