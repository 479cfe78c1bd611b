"""What a function that trains tells of its parameters by what it does with them, whatever they are called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lightlint.syntax import walked

_OF_OPTIMIZERS = {"step", "zero_grad", "state_dict", "load_state_dict", "add_param_group", "param_groups", "state"}
_OF_MODULES = {"train", "eval", "parameters", "named_parameters", "state_dict", "load_state_dict", "to", "zero_grad"}
_AROUND = {"enumerate", "tqdm", "islice", "track", "trange"}


def roles_in(function: ast.AST) -> dict[str, str]:
    """The parameters of a function that are an optimizer, a loader, a model or a loss: of one that goes backward and steps, in a
    loop of its own or once."""
    arguments = getattr(function, "args", None)
    if not isinstance(arguments, ast.arguments) or not _trains(function):
        return {}
    names = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} - {"self", "cls"}
    asked = {name: {*_asked(function, name)} for name in names}
    found: dict[str, str] = {}
    loops = [each for each in walked(function) if isinstance(each, (ast.For, ast.AsyncFor)) and _trains(each)]
    for loop in loops:
        over = _gone_over(loop.iter)
        if over in names and not any(_trains(each) for part in loop.body for each in walked(part) if _is_loop(each)):
            found.setdefault(over, "loader")
    places: list[ast.AST] = [*loops] or [function]
    for place in places:
        steppers = {each for each in names if any(_is_call(node, each, "step") for node in walked(place))}
        steppers = {each for each in steppers if asked[each] <= _OF_OPTIMIZERS}
        plain = {each for each in steppers if "zero_grad" in asked[each]} or steppers
        if len(plain) == 1:
            found.update(dict.fromkeys(plain, "optimizer"))
        for name, inner in _called(place, names):
            found.setdefault(name, "criterion" if inner & names or not asked[name] <= _OF_MODULES else "model")
    return found if "optimizer" in found.values() else {}


def _is_loop(node: ast.AST) -> bool:
    return isinstance(node, (ast.For, ast.AsyncFor))


def _trains(loop: ast.AST) -> bool:
    """Whether a pass backward and a step without arguments stand in a loop."""
    calls = [each for each in walked(loop) if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)]
    names = {each.func.attr for each in calls if isinstance(each.func, ast.Attribute) and not each.args}
    return {"backward", "step"} <= names


def _gone_over(node: ast.expr) -> str:
    """The name that a loop goes over, within `enumerate` and its like."""
    while isinstance(node, ast.Call) and node.args and _last(node.func) in _AROUND:
        node = node.args[0]
    return node.id if isinstance(node, ast.Name) else ""


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_call(node: ast.AST, name: str, method: str) -> bool:
    func = node.func if isinstance(node, ast.Call) and not node.args else None
    return isinstance(func, ast.Attribute) and func.attr == method and getattr(func.value, "id", "") == name


def _asked(function: ast.AST, name: str) -> Iterator[str]:
    """The attributes that are asked of a name."""
    for node in walked(function):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == name:
            yield node.attr


def _called(place: ast.AST, names: set[str]) -> Iterator[tuple[str, set[str]]]:
    """The parameters that a loop calls with what it goes over or computes of it, a function with anything, each with those that
    are called for its arguments, too."""
    whole = not isinstance(place, (ast.For, ast.AsyncFor))
    seeds = names if whole else {e.id for e in walked(getattr(place, "target", place)) if isinstance(e, ast.Name)}
    computed: dict[str, set[str]] = {each: set() for each in seeds}
    body = getattr(place, "body", [])
    for node in sorted((each for part in body for each in walked(part)), key=_place):
        if isinstance(node, ast.Assign):
            of = {each.id for each in walked(node.value) if isinstance(each, ast.Name)} & computed.keys()
            called = {each for each in _callees(node.value) if each in names}
            made = called.union(*(computed[each] for each in of))
            bound = [each.id for target in node.targets for each in walked(target) if isinstance(each, ast.Name)]
            computed.update({each: computed.get(each, set()) | made for each in bound} if of else {})
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            of = {each.id for arg in node.args for each in walked(arg) if isinstance(each, ast.Name)} & computed.keys()
            inner = {each for arg in node.args for each in _callees(arg)}
            several = len(node.args) > 1  # what a loss takes: an answer and a label
            if of:
                yield node.func.id, inner.union(*(computed[each] for each in of)) - {node.func.id} if several else set()


def _callees(node: ast.AST) -> Iterator[str]:
    """The names that are called in some code."""
    calls = (each.func for each in walked(node) if isinstance(each, ast.Call))
    return (each.id for each in calls if isinstance(each, ast.Name))


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
