"""What a function that trains tells of its parameters by what it does with them, whatever they are called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lightlint.syntax import walked

_OF_OPTIMIZERS = {"step", "zero_grad", "state_dict", "load_state_dict", "add_param_group", "param_groups", "state"}
_OF_MODULES = {"train", "eval", "parameters", "named_parameters", "state_dict", "load_state_dict", "to", "zero_grad"}
_AROUND = {"enumerate", "tqdm", "islice", "track", "trange"}


def roles_in(function: ast.AST) -> dict[str, str]:
    """The parameters of a function that are an optimizer, a loader, a model or a loss: of one with a loop of its own that goes
    backward and steps."""
    arguments = getattr(function, "args", None)
    if not isinstance(arguments, ast.arguments):
        return {}
    names = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} - {"self", "cls"}
    loops = [each for each in walked(function) if isinstance(each, (ast.For, ast.AsyncFor)) and _trains(each)]
    if not loops:
        return {}
    asked = {name: {*_asked(function, name)} for name in names}
    found: dict[str, str] = {}
    for loop in loops:
        over = _gone_over(loop.iter)
        steppers = {each for each in names if any(_is_call(node, each, "step") for node in walked(loop))}
        if over in names and not any(_trains(each) for part in loop.body for each in walked(part) if _is_loop(each)):
            found.setdefault(over, "loader")
        steppers = {each for each in steppers if asked[each] <= _OF_OPTIMIZERS}
        plain = {each for each in steppers if "zero_grad" in asked[each]} or steppers
        if len(plain) == 1:
            found.update(dict.fromkeys(plain, "optimizer"))
        for name, inner in _called(loop, names):
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


def _called(loop: ast.For | ast.AsyncFor, names: set[str]) -> Iterator[tuple[str, set[str]]]:
    """The parameters that a loop calls with what it goes over or computes of it, each with those in its arguments or in what
    they were made with."""
    computed: dict[str, set[str]] = {each.id: set() for each in walked(loop.target) if isinstance(each, ast.Name)}
    for node in sorted((each for part in loop.body for each in walked(part)), key=_place):
        if isinstance(node, ast.Assign):
            of = {each.id for each in walked(node.value) if isinstance(each, ast.Name)}
            if of & computed.keys():
                made = of.union(*(computed[each] for each in of & computed.keys()))
                targets = (each for target in node.targets for each in walked(target))
                computed.update(
                    {each.id: computed.get(each.id, set()) | made for each in targets if isinstance(each, ast.Name)}
                )
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names:
            of = {each.id for given in node.args for each in walked(given) if isinstance(each, ast.Name)}
            if of & computed.keys():
                yield node.func.id, of.union(*(computed[each] for each in of & computed.keys())) - {node.func.id}  # type: ignore[attr-defined]


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
