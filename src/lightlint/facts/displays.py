"""Lists, tuples and dicts as code spells them: the items written there, and those that code adds later."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.names import Names
from lightlint.facts.tree import Tree

Display = cst.List | cst.Tuple | cst.Dict | cst.ListComp | cst.DictComp

_GROWING = {"append": 0, "insert": 1, "extend": 0}  # the position of what is added
_MOVING = {"to", "cuda"}


def items(display: Display) -> list[cst.BaseExpression]:
    """The items that a display spells, of a dict its values."""
    match display:
        case cst.ListComp():
            return [display.elt]
        case cst.DictComp():
            return [display.value]
    return [each.value for each in display.elements]


def moves_items(tree: Tree, names: Names, room: cst.CSTNode, key: str) -> bool:
    """Whether code in a class moves what is in the container that `key` names: in a loop over it, or by its subscript."""
    movers = [call.func for call in tree.within(room, cst.Call) if names.method(call) in _MOVING]
    receivers = [func.value for func in movers if isinstance(func, cst.Attribute)]
    if any(isinstance(each, cst.Subscript) and names.key(each.value) == key for each in receivers):
        return True
    for loop in tree.within(room, cst.For, cst.CompFor):
        body = loop if isinstance(loop, cst.For) else tree.parent(loop) or loop
        if any(names.key(each) == key for each in tree.within(loop.iter, cst.Attribute)):
            drawn = {each.value for each in tree.within(loop.target, cst.Name)}
            if any(
                isinstance(each, cst.Name) and each.value in drawn and tree.contains(body, each) for each in receivers
            ):
                return True
    return False


def added_to(tree: Tree, names: Names, room: cst.CSTNode, key: str) -> list[cst.BaseExpression]:
    """What code in a class or function puts into the container that `key` names."""
    found: list[cst.BaseExpression] = []
    for call in tree.within(room, cst.Call):
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value in _GROWING and names.key(func.value) == key:
            place = _GROWING[func.attr.value]
            given = call.args[place].value if len(call.args) > place else None
            found += items(given) if isinstance(given, Display) else [given] if given is not None else []
    for assign in tree.within(room, cst.Assign):
        held = assign.targets[0].target
        if isinstance(held, cst.Subscript) and names.key(held.value) == key:
            found.append(assign.value)
    for grown in tree.within(room, cst.AugAssign):
        if names.key(grown.target) == key and isinstance(grown.value, Display):
            found += items(grown.value)
    return found
