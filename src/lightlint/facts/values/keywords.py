"""Every keyword a call surely gives, also those that travel in a dict: `**{"a": 1}`, `**dict(a=1)`, `**config`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind

if TYPE_CHECKING:
    from lightlint.facts.basis import Basis


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword by name: where it is written (an argument, or the key of a dict) and the value it gives."""

    name: str
    node: cst.CSTNode
    value: cst.BaseExpression


def keywords(facts: Basis, call: cst.Call) -> list[Keyword]:
    """The keywords of a call. A dict that another function made or changes, or that loses keys, gives none."""
    found: list[Keyword] = []
    for arg in call.args:
        if arg.keyword is not None:
            found.append(Keyword(arg.keyword.value, arg, arg.value))
        elif arg.star == "**":
            found.extend(entries(facts, arg.value, call))
    return found


def entries(facts: Basis, value: cst.BaseExpression, call: cst.Call) -> Iterator[Keyword]:
    """The keys that a dict surely has when it gets to a call, also one that an attribute or a dataclass of this file holds."""
    if isinstance(value, cst.Attribute) and value.attr.value != "__dict__":
        yield from _of_attribute(facts, value, call)
    elif _instance(facts, value) is not None:
        yield from _of_dataclass(facts, _instance(facts, value))
    else:
        yield from _of_dict(facts, value, call)


def _of_attribute(facts: Basis, value: cst.Attribute, call: cst.Call) -> Iterator[Keyword]:
    """What `self.options` holds, which the class assigns once, with the keys that its methods add."""
    key, around = facts.names.key(value), facts.tree.enclosing_class(call)
    if around is None or not key.startswith("self.") or key.count(".") != 1:
        return
    assigns = facts.tree.within(around, cst.Assign)
    made = [each for each in assigns if any(_is_of(facts, t.target, key, around) for t in each.targets)]
    calls = facts.tree.within(around, cst.Call)
    taken = any(
        isinstance(each.func, cst.Attribute)
        and each.func.attr.value in {"pop", "clear", "popitem", "update"}
        and facts.names.key(each.func.value) == key
        for each in calls
    )
    deleted = any(facts.names.key(each.value) == key for each in _deleted(facts, around))
    if len(made) != 1 or taken or deleted or not isinstance(made[0].value, (cst.Dict, cst.Call)):
        return
    yield from _of_dict(facts, made[0].value, call)
    for assign in assigns:
        for target in assign.targets:
            place = target.target
            if isinstance(place, cst.Subscript) and facts.names.key(place.value) == key:
                index = place.slice[0].slice
                word = facts.names.constant(index.value) if isinstance(index, cst.Index) else None
                if isinstance(word, str):
                    yield Keyword(word, place, assign.value)


def _is_of(facts: Basis, target: cst.BaseExpression, key: str, around: cst.ClassDef) -> bool:
    """Whether a target is an attribute of `self`, or the name in the body of the class that stands for it."""
    in_body = isinstance(target, cst.Name) and facts.tree.class_of(target) is around
    return facts.names.key(target) == key or (in_body and f"self.{facts.names.key(target)}" == key)


def _instance(facts: Basis, value: cst.BaseExpression) -> cst.Call | None:
    """The call that makes the object of `asdict(config)`, `vars(config)` and `config.__dict__`."""
    held: cst.BaseExpression | None = None
    if (
        isinstance(value, cst.Call)
        and facts.names.of(value.func) in {"dataclasses.asdict", "builtins.vars"}
        and value.args
    ):
        held = value.args[0].value
    elif isinstance(value, cst.Attribute) and value.attr.value == "__dict__":
        held = value.value
    if isinstance(held, cst.Name):
        bound = facts.names.bindings.lookup(held)
        held = bound[0].value if len(bound) == 1 and bound[0].kind is Kind.ASSIGN and not bound[0].path else None
    return held if isinstance(held, cst.Call) else None


def _of_dataclass(facts: Basis, made: cst.Call | None) -> Iterator[Keyword]:
    """The fields of a dataclass of this file without bases, and what they are by default."""
    name = facts.names.call(made)
    for node in facts.tree.all(cst.ClassDef):
        spelled = [each.decorator for each in node.decorators]
        marked = {facts.names.of(each.func if isinstance(each, cst.Call) else each) for each in spelled}
        if facts.names.defined(node) != name or node.bases or "dataclasses.dataclass" not in marked:
            continue
        for field in facts.tree.own(node.body, cst.AnnAssign):
            if isinstance(field.target, cst.Name) and field.value is not None:
                yield Keyword(field.target.value, field.target, field.value)


def _of_dict(facts: Basis, value: cst.BaseExpression, call: cst.Call) -> Iterator[Keyword]:
    if isinstance(value, cst.Dict):
        for element in value.elements:
            key = facts.names.constant(element.key) if isinstance(element, cst.DictElement) else None
            if isinstance(element, cst.DictElement) and isinstance(key, str):
                yield Keyword(key, element.key, element.value)
            elif isinstance(element, cst.StarredDictElement):
                yield from _of_dict(facts, element.value, call)
    elif isinstance(value, cst.Call) and facts.names.of(value.func) == "builtins.dict":
        yield from (Keyword(a.keyword.value, a, a.value) for a in value.args if a.keyword is not None)
    elif isinstance(value, cst.Subscript) or _is_parameter(facts, value):
        seen = facts.dicts.held(value)
        yield from (Keyword(key, seen.keys[key], given) for key, given in seen.values.items()) if seen else ()
    elif isinstance(value, cst.Name):
        bound = facts.names.bindings.lookup(value)
        if len(bound) == 1 and bound[0].kind is Kind.ASSIGN and bound[0].value is not None and not bound[0].path:
            scope = bound[0].scope
            known = scope is facts.tree.owner(call) or (
                isinstance(scope, cst.Module) and isinstance(bound[0].value, cst.Dict)
            )
            taken = _is_taken(facts, value.value) or _is_set_elsewhere(facts, value.value, scope)
            if known and isinstance(scope, (cst.FunctionDef, cst.Module)) and not taken:
                yield from held(facts, value.value, bound[0].value, scope, call)


def _is_parameter(facts: Basis, value: cst.BaseExpression) -> bool:
    found = facts.names.bindings.lookup(value) if isinstance(value, cst.Name) else []
    return len(found) == 1 and found[0].kind is Kind.PARAMETER


def _is_taken(facts: Basis, name: str) -> bool:
    """Whether something in the file may take keys out of a dict, now or where the bound method is called."""
    return any(
        each.attr.value in {"pop", "clear", "popitem"} and facts.names.key(each.value) == name
        for each in facts.tree.all(cst.Attribute)
    )


def _is_set_elsewhere(facts: Basis, name: str, scope: cst.CSTNode) -> bool:
    """Whether a function of the file sets keys of a dict of the module."""
    targets = [each.target for each in facts.tree.all(cst.AssignTarget)] if isinstance(scope, cst.Module) else []
    items = [each for each in targets if isinstance(each, cst.Subscript) and facts.names.key(each.value) == name]
    return any(facts.tree.owner(each) is not scope for each in items)


def held(
    facts: Basis, name: str, made: cst.BaseExpression, scope: cst.FunctionDef | cst.Module, call: cst.Call
) -> Iterator[Keyword]:
    """What a dict made under a name holds when it gets to the call: its display and the keys set on the way."""
    if isinstance(made, cst.Name) or _is_handed_on(facts, name, scope, call):
        return
    yield from _of_dict(facts, made, call)
    for assign in facts.tree.own(scope, cst.Assign):
        for target in assign.targets:
            place = target.target
            if (
                isinstance(place, cst.Subscript)
                and facts.names.key(place.value) == name
                and facts.tree.order(assign) < facts.tree.order(call)
            ):
                index = place.slice[0].slice
                key = facts.names.constant(index.value) if isinstance(index, cst.Index) else None
                if isinstance(key, str):
                    yield Keyword(key, place, assign.value)
    for update in facts.tree.own(scope, cst.Call):
        func = update.func
        updates = (
            isinstance(func, cst.Attribute) and func.attr.value == "update" and facts.names.key(func.value) == name
        )
        if updates and facts.tree.order(update) < facts.tree.order(call):
            yield from keywords(facts, update)
            for arg in update.args:
                if arg.keyword is None and not arg.star and isinstance(arg.value, cst.Dict):
                    yield from _of_dict(facts, arg.value, call)


def _is_handed_on(facts: Basis, name: str, scope: cst.CSTNode, call: cst.Call) -> bool:
    """Whether a dict may lose keys before the call: `pop`, `del`, or a function that gets it."""
    for other in facts.tree.own(scope, cst.Call):
        func = other.func
        if (
            isinstance(func, cst.Attribute)
            and facts.names.key(func.value) == name
            and func.attr.value in {"pop", "clear", "popitem"}
        ):
            return True
        given = any(facts.names.key(arg.value) == name and not arg.star for arg in other.args)
        if (
            given
            and facts.names.of(func) not in {"builtins.print", "builtins.len"}
            and facts.tree.order(other) < facts.tree.order(call)
        ):
            return True
    return any(facts.names.key(each.value) == name for each in _deleted(facts, scope))


def _deleted(facts: Basis, scope: cst.CSTNode) -> list[cst.Subscript]:
    return [
        each for statement in facts.tree.own(scope, cst.Del) for each in facts.tree.within(statement, cst.Subscript)
    ]
