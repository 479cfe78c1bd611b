"""Every keyword a call surely gives, also those that travel in a dict: `**{"a": 1}`, `**dict(a=1)`, `**config`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.names import Names
from lightlint.facts.tree import Tree


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword by name: where it is written (an argument, or the key of a dict) and the value it gives."""

    name: str
    node: cst.CSTNode
    value: cst.BaseExpression


def keywords(tree: Tree, names: Names, call: cst.Call) -> list[Keyword]:
    """The keywords of a call. A dict that another function made or changes, or that loses keys, gives none."""
    found: list[Keyword] = []
    for arg in call.args:
        if arg.keyword is not None:
            found.append(Keyword(arg.keyword.value, arg, arg.value))
        elif arg.star == "**":
            found.extend(_of_dict(tree, names, arg.value, call))
    return found


def _of_dict(tree: Tree, names: Names, value: cst.BaseExpression, call: cst.Call) -> Iterator[Keyword]:
    if isinstance(value, cst.Dict):
        for element in value.elements:
            key = names.constant(element.key) if isinstance(element, cst.DictElement) else None
            if isinstance(element, cst.DictElement) and isinstance(key, str):
                yield Keyword(key, element.key, element.value)
    elif isinstance(value, cst.Call) and names.of(value.func) == "builtins.dict":
        yield from (Keyword(a.keyword.value, a, a.value) for a in value.args if a.keyword is not None)
    elif isinstance(value, cst.Name):
        bound = names.bindings.lookup(value)
        if len(bound) == 1 and bound[0].kind is Kind.ASSIGN and bound[0].value is not None and not bound[0].path:
            scope = bound[0].scope
            if scope is tree.owner(call) and isinstance(scope, (cst.FunctionDef, cst.Module)):
                yield from _of_name(tree, names, value.value, bound[0].value, scope, call)


def _of_name(
    tree: Tree, names: Names, name: str, made: cst.BaseExpression, scope: cst.FunctionDef | cst.Module, call: cst.Call
) -> Iterator[Keyword]:
    """What a local dict holds when it gets to the call: its display and the keys set on the way."""
    if isinstance(made, cst.Name) or _is_handed_on(tree, names, name, scope, call):
        return
    yield from _of_dict(tree, names, made, call)
    for assign in tree.own(scope, cst.Assign):
        for target in assign.targets:
            place = target.target
            if (
                isinstance(place, cst.Subscript)
                and names.key(place.value) == name
                and tree.order(assign) < tree.order(call)
            ):
                index = place.slice[0].slice
                key = names.constant(index.value) if isinstance(index, cst.Index) else None
                if isinstance(key, str):
                    yield Keyword(key, place, assign.value)
    for update in tree.own(scope, cst.Call):
        func = update.func
        updates = isinstance(func, cst.Attribute) and func.attr.value == "update" and names.key(func.value) == name
        if updates and tree.order(update) < tree.order(call):
            yield from keywords(tree, names, update)
            for arg in update.args:
                if arg.keyword is None and not arg.star and isinstance(arg.value, cst.Dict):
                    yield from _of_dict(tree, names, arg.value, call)


def _is_handed_on(tree: Tree, names: Names, name: str, scope: cst.CSTNode, call: cst.Call) -> bool:
    """Whether a dict may lose keys before the call: `pop`, `del`, or a function that gets it."""
    for other in tree.own(scope, cst.Call):
        func = other.func
        if (
            isinstance(func, cst.Attribute)
            and names.key(func.value) == name
            and func.attr.value in {"pop", "clear", "popitem"}
        ):
            return True
        given = any(names.key(arg.value) == name and not arg.star for arg in other.args)
        if given and names.of(func) not in {"builtins.print", "builtins.len"} and tree.order(other) < tree.order(call):
            return True
    return any(names.key(each.value) == name for each in _deleted(tree, scope))


def _deleted(tree: Tree, scope: cst.CSTNode) -> list[cst.Subscript]:
    return [each for statement in tree.own(scope, cst.Del) for each in tree.within(statement, cst.Subscript)]
