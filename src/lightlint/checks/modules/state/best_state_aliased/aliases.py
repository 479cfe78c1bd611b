"""Names that hold a module's live weights: its `state_dict()`, a shallow copy of one, or the module under a second name."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.objects.classes import Classes
from lightlint.facts.values.values import Values

_SHALLOW = {"builtins.dict", "collections.OrderedDict", "copy.copy"}
_NO_WEIGHTS = re.compile(r"data_?module|optim|sched|sampler|loader|dataset|scaler|callback", re.IGNORECASE)
_SAME_STORAGE = {"detach", "view_as"}


def live_state(tree: Tree, names: Names, value: cst.CSTNode | None) -> cst.Call | None:
    """The `x.state_dict()` call whose tensors a value shares: itself, `.copy()`, `dict(...)`, `{k: v for ...}`, or a dict
    display with one of these under a key."""
    match value:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="state_dict"))):
            return value if not value.args else None
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="copy"))) if not value.args:
            return live_state(tree, names, inner)
        case cst.Call() if names.call(value) in _SHALLOW and len(value.args) == 1:
            return live_state(tree, names, value.args[0].value)
        case cst.Dict():
            held = [live_state(tree, names, each.value) for each in value.elements]
            return next((each for each in held if each is not None), None)
        case cst.DictComp(for_in=cst.CompFor(target=cst.Tuple(elements=[_, second]), iter=iterable)):
            if (
                names.method(iterable) == "items"
                and isinstance(iterable, cst.Call)
                and _is_same(value.value, second.value)
            ):
                return (
                    live_state(tree, names, iterable.func.value) if isinstance(iterable.func, cst.Attribute) else None
                )
    return None


def live_parameters(names: Names, value: cst.CSTNode | None) -> cst.Call | None:
    """The `x.parameters()` (or `x.named_parameters()`, `x.state_dict()`) call whose tensors a list, or a dict by name, shares."""
    match value:
        case cst.Call(args=[only]) if names.call(value) in {"builtins.list", "builtins.tuple", *_SHALLOW}:
            return _holding(only.value)
        case cst.ListComp(for_in=cst.CompFor(target=cst.Name() as name, iter=iterable)):
            return _holding(iterable) if _is_same(value.elt, name) and not value.for_in.inner_for_in else None
        case cst.DictComp(for_in=cst.CompFor(target=cst.Tuple(elements=[_, second]), iter=iterable)):
            return _holding(iterable) if _is_same(value.value, second.value) else None
    return None


def _holding(drawn: cst.BaseExpression) -> cst.Call | None:
    """The call that gives a module's own tensors to what is drawn: `net.parameters()`, `net.state_dict()` of its `values()`."""
    if not isinstance(drawn, cst.Call) or drawn.args or not isinstance(drawn.func, cst.Attribute):
        return None
    method, holder = drawn.func.attr.value, drawn.func.value
    if method == "values" and isinstance(holder, cst.Call) and isinstance(holder.func, cst.Attribute):
        return holder if holder.func.attr.value == "state_dict" and not holder.args else None
    return drawn if method in {"parameters", "named_parameters"} else None


def _is_same(value: cst.CSTNode, name: cst.CSTNode) -> bool:
    """Whether a comprehension keeps each tensor: `v`, `v.detach()`, `v.data`."""
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value in _SAME_STORAGE:
        value = value.func.value
    if isinstance(value, cst.Attribute) and value.attr.value == "data":
        value = value.value
    return isinstance(value, cst.Name) and isinstance(name, cst.Name) and value.value == name.value


def is_live_holder(values: Values, classes: Classes, holder: cst.BaseExpression) -> bool:
    """Whether `state_dict()` of an object may hold weights: false where its class of this file makes its own, and for
    what by its name is no module, such as a data module or an optimizer."""
    origins = values.origins(holder)
    if _NO_WEIGHTS.search(dotted_name(holder).rpartition(".")[2]) and not values.is_module(holder):
        return False
    local = [node for each in origins if (node := classes.local(each.name)) is not None]
    return not any(classes.method(node, "state_dict") is not None for node in local)


def rebinding(tree: Tree, names: Names, owner: cst.CSTNode, key: str) -> Iterator[cst.CSTNode]:
    """The statements of a function that give a name, or an attribute, another object."""
    for target in tree.own(owner, cst.AssignTarget):
        parts = target.target.elements if isinstance(target.target, (cst.Tuple, cst.List)) else [target]
        named = [each.value if isinstance(each, cst.BaseElement) else each.target for each in parts]
        statement = tree.statement(target)
        if statement is not None and any(names.key(each) == key for each in named):
            yield statement
    for loop in tree.own(owner, cst.For):
        if any(name.value == key for name in tree.within(loop.target, cst.Name)):
            yield loop
