"""What a program takes what it loads for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_TRIES = (cst.If, cst.IfExp, cst.BooleanOperation, cst.Try, cst.While, cst.For)
_OF_DICTS = {"get", "items", "keys", "values", "pop", "update"}


def reads_items(facts: Linked, load: cst.Call) -> bool:
    """Whether what is loaded is taken for a dict: it goes into a module, or its items are asked for."""
    return any(_takes_items(facts, each) for each in _uses(facts, load))


def keys_needed(facts: Linked, load: cst.Call) -> set[str]:
    """The keys that are asked for whatever is loaded: with another file the program would raise."""
    keys = (_key_read(facts, each) for each in _uses(facts, load) if not _is_tried(facts, each, load))
    return {key for key in keys if isinstance(key, str)}


def _key_read(facts: Linked, value: cst.BaseExpression) -> object:
    """The key by which an item of a value is read."""
    item = facts.tree.parent(value)
    if not isinstance(item, cst.Subscript) or item.value is not value or len(item.slice) != 1:
        return None
    index = item.slice[0].slice
    stored = isinstance(facts.tree.parent(item), cst.AssignTarget)
    return facts.names.constant(index.value) if isinstance(index, cst.Index) and not stored else None


def _is_tried(facts: Linked, node: cst.CSTNode, load: cst.Call) -> bool:
    """Whether a test or a `try`, which the load is not in as well, stands around something."""
    around = (each for each in facts.tree.ancestors(node) if isinstance(each, _TRIES))
    return any(not facts.tree.contains(each, load) for each in around)


def _uses(facts: Linked, load: cst.Call) -> list[cst.BaseExpression]:
    """Where what is loaded is used: in its place, or under the name that it is given."""
    parent = facts.tree.parent(load)
    if not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
        return [load]
    target = parent.targets[0].target
    if not isinstance(target, cst.Name):
        return []
    names = facts.tree.own(facts.tree.owner(parent), cst.Name)
    alike = (each for each in names if each.value == target.value and each is not target)
    return [each for each in alike if load in facts.reaching.sources(each)]


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
