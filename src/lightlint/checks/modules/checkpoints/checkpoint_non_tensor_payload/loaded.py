"""What a program takes what it loads for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_OF_DICTS = {"get", "items", "keys", "values", "pop", "update"}


def reads_items(facts: Linked, load: cst.Call) -> bool:
    """Whether what is loaded is taken for a dict: it goes into a module, or its items are asked for."""
    parent = facts.tree.parent(load)
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
        target = parent.targets[0].target
        owner = facts.tree.owner(parent)
        if not isinstance(target, cst.Name):
            return False
        return any(
            _takes_items(facts, each)
            for each in facts.tree.own(owner, cst.Name)
            if each.value == target.value and each is not target and load in facts.reaching.sources(each)
        )
    return _takes_items(facts, load)


def _takes_items(facts: Linked, value: cst.BaseExpression) -> bool:
    parent = facts.tree.parent(value)
    match parent:
        case cst.Subscript():
            return parent.value is value
        case cst.Attribute(attr=cst.Name(value=word)):
            return parent.value is value and word in _OF_DICTS
        case cst.Arg():
            return facts.names.method(facts.tree.parent(parent)) == "load_state_dict"
        case cst.Call(args=[cst.Arg(value=first), *_]):
            return first is value and facts.names.method(parent) == "load_state_dict"
    return False
