"""Which keys a dict can have that a function returns: a display, `dict(...)`, what a helper gives, and keys set on the way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Binding, Kind

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_READING = {"items", "keys", "values", "get", "copy", "pop"}
_TELLING = {"log_dict", "log_metrics"}
_DEPTH = 4
Keys = frozenset[str] | None  # None where the dict may have any
_NONE: frozenset[str] = frozenset()


def returned_keys(facts: FileFacts, value: cst.BaseExpression, depth: int = 0) -> Keys:
    """Every key that a returned value can have, None unless it surely is a dict of which all keys are in sight."""
    if depth > _DEPTH:
        return None
    match value:
        case cst.Dict():
            return _joined(_of_element(facts, each, depth) for each in value.elements)
        case cst.Call():
            return _of_call(facts, value, depth)
        case cst.Name():
            found = facts.names.bindings.lookup(value)
            made = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
            if made is not None and made.value is not None and made.scope is facts.tree.owner(value):
                return _of_binding(facts, made, made.value, depth)
    return None


def _joined(found: Iterable[Keys]) -> Keys:
    joined = _NONE
    for keys in found:
        if keys is None:
            return None
        joined |= keys
    return joined


def _of_element(facts: FileFacts, element: cst.BaseDictElement, depth: int) -> Keys:
    if isinstance(element, cst.DictElement):
        return _spelled(facts, element.key)
    return returned_keys(facts, element.value, depth + 1)


def _spelled(facts: FileFacts, key: cst.BaseExpression) -> Keys:
    texts = facts.strings.possible(key)
    return frozenset(texts) if texts else None


def _of_call(facts: FileFacts, call: cst.Call, depth: int) -> Keys:
    """The keys of `dict(a=1)`, and those that a function or method of this file gives in every case."""
    if facts.names.of(call.func) == "builtins.dict":
        words = [arg.keyword.value if arg.keyword is not None else "" for arg in call.args]
        return frozenset(words) if all(words) else None
    callees = facts.hooks.callees(call)
    if len(callees) != 1 or callees[0].decorators or facts.hooks.of(callees[0]) is not None:
        return None
    given = facts.values.returns(callees[0])
    keys = _joined(returned_keys(facts, each, depth + 1) if each is not None else None for each in given)
    return keys if given and keys else None  # an empty dict is a place for what subclasses of other files give


def _of_binding(facts: FileFacts, binding: Binding, made: cst.BaseExpression, depth: int) -> Keys:
    """The keys of a dict when it was made, and those that uses of its name may add; None if one may add any."""
    uses = [
        each
        for each in facts.tree.within(binding.scope, cst.Name)
        if each.value == binding.name
        and each is not binding.site
        and facts.names.bindings.home(each.value, facts.tree.scope(each)) is binding.scope
    ]
    added = _joined(_by_use(facts, each, depth) for each in uses)
    return None if added is None else _joined([added, returned_keys(facts, made, depth + 1)])


def _by_use(facts: FileFacts, use: cst.Name, depth: int) -> Keys:
    above = facts.tree.parent(use)
    match above:
        case cst.Subscript() if above.value is use:
            return _by_item(facts, above)
        case cst.Attribute() if above.value is use:
            return _by_method(facts, above, depth)
        case cst.Attribute() | cst.Return() | cst.StarredDictElement() | cst.Comparison() | cst.ComparisonTarget():
            return _NONE
        case cst.AssignTarget():
            return _NONE if above.target is use else None
        case cst.For() | cst.CompFor():
            return _NONE if above.iter is use else None
        case cst.Arg():
            call = facts.tree.parent(above)
            looks = (facts.names.call(call) or "").startswith(("builtins.", "torch.")) or above.star == "**"
            return _NONE if above.value is not use or looks or facts.names.method(call) in _TELLING else None
    return None


def _by_item(facts: FileFacts, item: cst.Subscript) -> Keys:
    """The key that an assignment to an item sets; reading, changing and deleting one adds none."""
    above = facts.tree.parent(item)
    if not isinstance(above, (cst.AssignTarget, cst.AnnAssign, cst.Element, cst.For, cst.CompFor, cst.AsName)):
        return _NONE
    index = item.slice[0].slice
    return _spelled(facts, index.value) if isinstance(index, cst.Index) else None


def _by_method(facts: FileFacts, attribute: cst.Attribute, depth: int) -> Keys:
    call, method = facts.tree.parent(attribute), attribute.attr.value
    if not isinstance(call, cst.Call) or call.func is not attribute:
        return None
    if method in _READING:
        return _NONE
    if method == "setdefault" and call.args:
        return _spelled(facts, call.args[0].value)
    if method != "update":
        return None
    words = [_NONE if arg.keyword is None else frozenset([arg.keyword.value]) for arg in call.args]
    plain = [arg.value for arg in call.args if arg.keyword is None]
    return _joined([*words, *(returned_keys(facts, each, depth + 1) for each in plain)])
