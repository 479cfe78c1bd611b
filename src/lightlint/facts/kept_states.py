"""Recurrent states that a module keeps on itself from one forward pass to the next, with their graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.carried_graphs import cuts
from lightlint.facts.tree import Loop

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

RECURRENT = {"torch.nn.RNN", "torch.nn.LSTM", "torch.nn.GRU"}


def kept_state(facts: FileFacts, call: cst.Call, loop: Loop) -> str | None:
    """`hidden` of a module that a call in a loop runs, whose `forward` says `out, self.hidden = self.rnn(x, self.hidden)`
    and where nothing between two iterations puts another state there."""
    origin = facts.values.constructor(call.func)
    node = facts.classes.local(origin.name) if origin is not None else None
    forward = facts.classes.methods(node).get("forward") if node is not None else None
    if node is None or forward is None or not facts.values.is_module(call.func):
        return None
    step = next(filter(None, (_carries(facts, each) for each in facts.tree.own(forward.body, cst.Assign))), None)
    if step is None or cuts(facts.tree, node) or facts.gradients.may_be_off(call) or _may_be_frozen(facts):
        return None
    state, assign = step
    returned = [each.value for each in facts.tree.own(forward.body, cst.Return) if each.value is not None]
    if not returned or facts.conditions(assign) or not all(hangs_on(facts, each, assign.value) for each in returned):
        return None
    key = facts.names.key(call.func)
    handed = (arg for each in facts.tree.own(loop.body, cst.Call) for arg in each.args)
    if any(facts.names.key(arg.value) == key for arg in handed):
        return None
    return state if not _is_reset(facts, node, assign, state, loop) else None


def _carries(facts: FileFacts, assign: cst.Assign) -> tuple[str, cst.Assign] | None:
    """The name of the attribute that a recurrent layer is given as its state, and that takes the next one."""
    target, call = assign.targets[0].target, assign.value
    if not isinstance(target, cst.Tuple) or len(target.elements) != 2 or not isinstance(call, cst.Call):
        return None
    state = target.elements[1].value
    given = facts.names.argument(call, "hx", 1)
    if not isinstance(state, cst.Attribute) or given is None or not facts.classes.is_self(state.value):
        return None
    same = facts.names.key(given.value) == facts.names.key(state)
    origin = facts.values.constructor(call.func) if same else None
    return (state.attr.value, assign) if origin is not None and origin.name in RECURRENT else None


def _is_reset(facts: FileFacts, node: cst.ClassDef, assign: cst.Assign, state: str, loop: Loop) -> bool:
    """Whether the state may be another one when the loop comes round: outside of `__init__` and of the function around
    the loop, in front of it, nothing may set it or call a method that does."""
    methods = facts.classes.methods(node)
    setters = {name for name, each in methods.items() if _names(facts, each, state)} - {"__init__", "forward"}
    here = facts.tree.owner(loop)
    touched: list[cst.CSTNode] = [each for each in facts.tree.all(cst.Attribute) if each.attr.value == state]
    calls = [each for each in facts.tree.all(cst.Call) if facts.names.method(each) in setters]
    for each in (*touched, *calls):
        owner = facts.tree.owner(each)
        method = next((name for name, one in methods.items() if one is owner), "")
        if not method:
            harmless = owner is here and not facts.tree.contains(loop.body, each)
        elif method == "forward":
            harmless = facts.tree.contains(assign, each)
        else:
            harmless = method == "__init__" or isinstance(each, cst.Attribute)
        if not harmless:
            return True
    return False


def _names(facts: FileFacts, method: cst.FunctionDef, state: str) -> bool:
    return any(each.attr.value == state for each in facts.tree.within(method, cst.Attribute))


def _may_be_frozen(facts: FileFacts) -> bool:
    words = {name.value for name in facts.tree.all(cst.Name)}
    return bool(words & {"requires_grad", "requires_grad_", "freeze", "setattr"})


def hangs_on(facts: FileFacts, value: cst.CSTNode, call: cst.CSTNode) -> bool:
    """Whether a value is made of what a call gives, by names of the function."""
    pending, seen = [value], set[str]()
    assign = facts.tree.parent(call)
    target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
    wanted = {name.value for name in facts.tree.within(target, cst.Name)} if target is not None else set()
    while pending:
        part = pending.pop()
        if facts.tree.contains(part, call):
            return True
        for name in facts.tree.within(part, cst.Name):
            if name.value in wanted:
                return True
            if name.value not in seen:
                seen.add(name.value)
                bound = facts.reaching.bindings(name)
                pending += [each.value for each in bound if each.kind is Kind.ASSIGN and each.value is not None]
    return False
