"""What dicts surely hold when they are read: displays, `dict(...)` and copies, through names, parameters, attributes and keys."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.objects.classes import Classes
from lightlint.facts.values.dict_changes import DictChanges

_COPIES = {"copy.deepcopy", "copy.copy"}
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Held:
    """Values and key nodes by key, as far as they are sure. `perhaps` are keys of unknown value, None if that is any key."""

    values: dict[str, cst.BaseExpression]
    keys: dict[str, cst.CSTNode]
    perhaps: frozenset[str] | None = frozenset()

    def lacks(self, key: str) -> bool:
        """Whether the dict surely has no such key."""
        return self.perhaps is not None and key not in self.perhaps and key not in self.values

    def under(self, other: Held | None) -> Held:
        """This dict with another one put over it, one out of sight for None."""
        if other is None or other.perhaps is None:
            return Held({}, {}, None) if other is None else Held(other.values, other.keys, None)
        mine = Held(self.values, self.keys, self.perhaps).without(other.perhaps)
        over = None if mine.perhaps is None else mine.perhaps - other.values.keys()
        return Held({**mine.values, **other.values}, {**mine.keys, **other.keys}, over)

    def without(self, changed: frozenset[str] | None) -> Held:
        """This dict where some keys may have got other values, or all may have for None."""
        if changed is None:
            return Held({}, {}, None)
        values = {key: value for key, value in self.values.items() if key not in changed}
        return Held(values, self.keys, None if self.perhaps is None else self.perhaps | changed)


@dataclass(frozen=True, slots=True)
class Given:
    """What a call gives for a parameter: `value` is None where it gives nothing, and that is `sure`, or it is out of sight."""

    value: cst.BaseExpression | None
    sure: bool = True


class Dicts:
    """The dicts of one file."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, hooks: Hooks) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._hooks = hooks
        self._found: dict[tuple[cst.CSTNode | None, int], Held | None] = {}
        self._changes = DictChanges(tree, names, classes, hooks, self.value_in, self.values_of)

    def argument(self, call: cst.Call, keyword: str, position: int | None = None) -> Given:
        """What a call gives for a parameter, also in a `**dict`."""
        direct = self._names.argument(call, keyword, position)
        if direct is not None:
            return Given(direct.value)
        for arg in call.args:
            held = self.held(arg.value) if arg.star == "**" else None
            if held is not None and keyword in held.values:
                return Given(held.values[keyword])
            if arg.star and (held is None or not held.lacks(keyword)) and (arg.star == "**" or position is not None):
                return Given(None, sure=False)
        return Given(None)

    def item(self, expression: cst.CSTNode | None, depth: int = 0) -> cst.BaseExpression | None:
        """The expression that gives `config["key"]` its value, None where it is out of sight."""
        if not isinstance(expression, cst.Subscript) or len(expression.slice) != 1:
            return None
        index = expression.slice[0].slice
        key = self._names.constant(index.value) if isinstance(index, cst.Index) else None
        held = self.held(expression.value, depth + 1) if isinstance(key, str) else None
        return held.values.get(key) if held is not None and isinstance(key, str) else None

    def value_in(self, container: cst.BaseExpression, key: str) -> cst.BaseExpression | None:
        """The value of a key in a dict as it is made."""
        held = self.held(container, _DEPTH - 2)
        return held.values.get(key) if held is not None else None

    def values_of(self, container: cst.BaseExpression) -> list[cst.BaseExpression] | None:
        """All values of a dict as it is made, None where some are out of sight."""
        held = self.held(container, _DEPTH - 2)
        return list(held.values.values()) if held is not None and held.perhaps == frozenset() else None

    def held(self, expression: cst.CSTNode | None, depth: int = 0) -> Held | None:
        """What an expression surely holds when it is a dict, None where that is out of sight."""
        if depth > _DEPTH:
            return None
        if (expression, depth) not in self._found:
            self._found[expression, depth] = self._held(expression, depth)
        return self._found[expression, depth]

    def _held(self, expression: cst.CSTNode | None, depth: int) -> Held | None:
        match expression:
            case cst.Dict():
                return self._of_display(expression, depth)
            case cst.Call():
                return self._of_call(expression, depth)
            case cst.Subscript():
                inner = self.item(expression, depth)
                return self.held(inner, depth + 1) if inner is not None else None
            case cst.Name():
                found = self._names.bindings.lookup(expression)
                return self._of_binding(found[0], depth) if len(found) == 1 else None
            case cst.Attribute():
                return self._of_attribute(expression, depth)
        return None

    def _of_display(self, display: cst.Dict, depth: int) -> Held:
        made = Held({}, {})
        for element in display.elements:
            if isinstance(element, cst.StarredDictElement):
                made = made.under(self.held(element.value, depth + 1))
            elif isinstance(element, cst.DictElement):
                key = self._names.constant(element.key)
                made = made.under(Held({key: element.value}, {key: element.key}) if isinstance(key, str) else None)
        return made

    def _of_call(self, call: cst.Call, depth: int) -> Held | None:
        name = self._names.call(call)
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value == "copy" and not call.args:
            return self.held(func.value, depth + 1)
        if name in _COPIES and len(call.args) == 1:
            return self.held(call.args[0].value, depth + 1)
        if name != "builtins.dict":
            return None
        made = Held({}, {})
        for arg in call.args:
            word = arg.keyword.value if arg.keyword is not None else ""
            one = Held({word: arg.value}, {word: arg}) if word else self.held(arg.value, depth + 1)
            made = made.under(None if arg.star == "*" else one)
        return made

    def _of_binding(self, binding: Binding, depth: int) -> Held | None:
        if binding.kind is Kind.PARAMETER and isinstance(binding.scope, cst.FunctionDef):
            return self._of_parameter(binding, binding.scope, depth)
        if binding.kind is not Kind.ASSIGN or binding.value is None or binding.path:
            return None
        made = self.held(binding.value, depth + 1)
        return made.without(self._changes.of_binding(binding, binding.value)) if made is not None else None

    def _of_parameter(self, binding: Binding, function: cst.FunctionDef, depth: int) -> Held | None:
        """What the calls of a function in this file give, if they all give the same."""
        calls = (*self._hooks.calls_of.get(function, ()), *self._hooks.constructions.get(function, ()))
        if not calls or self._hooks.of(function) is not None or any(map(self._names.has_star, calls)):
            return None
        if binding.site is function.params.star_kwarg:
            return self._of_rest(function, calls)
        given = [self._hooks.given(function, call, binding.name) or binding.value for call in calls]
        only = given[0] if all(self._is_same(each, given[0]) for each in given) else None
        made = self.held(only, depth + 1)
        return made.without(self._changes.of_binding(binding, only)) if made is not None and only is not None else None

    def _is_same(self, one: cst.BaseExpression | None, other: cst.BaseExpression | None) -> bool:
        """Whether two expressions are one, or one name of the module."""
        if one is other or not isinstance(one, cst.Name) or not isinstance(other, cst.Name):
            return one is other
        return self._names.bindings.lookup(one) == self._names.bindings.lookup(other)

    def _of_rest(self, function: cst.FunctionDef, calls: tuple[cst.Call, ...]) -> Held | None:
        """What `**rest` gathers in a function that is called once, or always without anything for it."""
        params = function.params
        named = {each.name.value for each in (*params.params, *params.kwonly_params)}
        rests = [[arg for arg in call.args if arg.keyword and arg.keyword.value not in named] for call in calls]
        if any(rests) and len(rests) > 1:
            return None
        words = {arg.keyword.value: arg for arg in rests[0] if arg.keyword is not None}
        return Held({word: arg.value for word, arg in words.items()}, dict(words))

    def _of_attribute(self, attribute: cst.Attribute, depth: int) -> Held | None:
        """What `self.config` holds, which a class of this file sets once."""
        node = self._classes.self_class(attribute.value)
        sources = self._classes.attribute_sources(node, attribute.attr.value) if node is not None else []
        if node is None or len(sources) != 1 or sources[0][1] or not self._classes.complete(node):
            return None
        made = self.held(sources[0][0], depth + 1)
        return (
            made.without(self._changes.of_attribute(attribute.attr.value, sources[0][0])) if made is not None else None
        )
