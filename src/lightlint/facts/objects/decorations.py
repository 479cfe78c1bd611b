"""What functions are decorated with."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import libcst as cst

from lightlint.facts.code.tree import Tree

_REWRAPPING: WeakKeyDictionary[Tree, dict[str, list[tuple[cst.Assign, cst.Call]]]] = WeakKeyDictionary()


def decorations(tree: Tree, function: cst.FunctionDef) -> list[cst.BaseExpression]:
    """What a function is given to before anybody calls it: behind `@`, or called with it, by its name, to take its place, as
    in `note = rank_zero_only(note)`."""
    return [*(each.decorator for each in function.decorators), *(call.func for call in rewrapped(tree, function))]


def rewrapped(tree: Tree, function: cst.FunctionDef) -> list[cst.Call]:
    """The calls that are given a function, by its name, and whose result takes its place."""
    if tree not in _REWRAPPING:
        _REWRAPPING[tree] = _rewrapping(tree)
    found = _REWRAPPING[tree].get(function.name.value, ())
    room, owner = tree.class_of(function), tree.owner(function)
    return [call for assign, call in found if tree.owner(assign) is owner and tree.class_of(assign) is room]


def _rewrapping(tree: Tree) -> dict[str, list[tuple[cst.Assign, cst.Call]]]:
    """The assignments of what a call makes of a name to that name, by the name."""
    found: dict[str, list[tuple[cst.Assign, cst.Call]]] = {}
    for assign in tree.all(cst.Assign):
        match assign:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Name(value=target))],
                value=cst.Call(args=[cst.Arg(value=cst.Name(value=given))]) as call,
            ) if target == given:
                found.setdefault(target, []).append((assign, call))
    return found
