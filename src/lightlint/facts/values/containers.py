"""What the items of lists, tuples and dicts come from."""

from __future__ import annotations

from typing import Protocol

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import UNKNOWN, Names
from lightlint.facts.code.tree import Scope, Tree
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.objects.classes import OPTIMIZER, Classes
from lightlint.facts.values.origins import DEPTH, Origin

_GROWING = {"append", "add", "extend", "insert", "update", "setdefault", "appendleft"}


class Followed(Protocol):
    """Values that are followed through names, as far as those in containers need it; see `Values`."""

    def origins_at(self, expression: cst.CSTNode | None, depth: int) -> list[Origin | None]: ...

    def given(self, function: cst.FunctionDef, call: cst.Call, parameter: str) -> cst.BaseExpression | None: ...

    def returns(self, function: cst.FunctionDef) -> list[cst.BaseExpression | None]: ...

    def is_optimizers(self, call: cst.Call) -> bool: ...


class Containers:
    """Origins of the items of one file's containers."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, hooks: Hooks, values: Followed) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._hooks = hooks
        self._values = values

    def of_loop(self, iterable: cst.BaseExpression, path: tuple[int, ...], depth: int) -> list[Origin | None]:
        """Origins of a loop's variable, through `enumerate`, `zip` and a dict's `items()`."""
        if not path:
            return self.of_items(iterable, depth)
        if isinstance(iterable, cst.Call) and len(path) == 1:
            name = self._names.call(iterable)
            plain = [arg.value for arg in iterable.args if not arg.star and arg.keyword is None]
            if name == "builtins.enumerate" and path == (1,) and plain:
                return self.of_items(plain[0], depth)
            if name == "builtins.zip" and 0 <= path[0] < len(plain) == len(iterable.args):
                return self.of_items(plain[path[0]], depth)
            if self._names.method(iterable) == "items" and path == (1,) and isinstance(iterable.func, cst.Attribute):
                return self.of_items(iterable.func.value, depth)
        return [None]

    def of_items(self, container: cst.CSTNode, depth: int, key: object = UNKNOWN) -> list[Origin | None]:
        """Origins of what a list, tuple or dict holds: of the item at `key`, or of every item."""
        if depth > DEPTH:
            return [None]
        if isinstance(container, cst.Call) and self._names.method(container) == "values":
            return self.of_items(container.func.value, depth) if isinstance(container.func, cst.Attribute) else [None]
        if not isinstance(container, cst.Name):
            return self._of_container(container, (), depth, key)
        found = self._names.bindings.lookup(container)
        if len(found) != 1:
            return [None]
        if found[0].kind is Kind.PARAMETER and isinstance(found[0].scope, cst.FunctionDef):
            function = found[0].scope
            calls = (*self._hooks.calls_of.get(function, ()), *self._hooks.constructions.get(function, ()))
            given = [self._values.given(function, call, container.value) for call in calls]
            items = [self.of_items(each, depth + 1, key) if each else [None] for each in given]
            return [origin for each in items for origin in each] or [None]
        if found[0].kind is Kind.ASSIGN and found[0].value is not None:
            added = self._added(found[0].scope, container.value, depth)
            held = self._of_container(found[0].value, found[0].path, depth + 1, key, empty=added)
            return [*held, *added]
        return [None]

    def called(self, call: cst.Call) -> str | None:
        """The class that `TABLE["key"](...)` makes an object of, or `kind(...)` where `kind = TABLE["key"]`; None where a
        table out of sight, a key that no constant gives, or anything but a class or function of a known name."""
        func: cst.BaseExpression | None = call.func
        bound = self._names.bindings.lookup(func) if isinstance(func, cst.Name) else []
        if bound:
            func = bound[0].value if len(bound) == 1 and bound[0].kind is Kind.ASSIGN and not bound[0].path else None
        if not isinstance(func, cst.Subscript) or len(func.slice) != 1 or not isinstance(func.value, cst.Name):
            return None
        index = func.slice[0].slice
        key = self._names.constant(index.value) if isinstance(index, cst.Index) else UNKNOWN
        tables = self._names.bindings.lookup(func.value)
        table = tables[0].value if len(tables) == 1 and tables[0].kind is Kind.ASSIGN else None
        if not isinstance(table, cst.Dict) or key is UNKNOWN or self._added(tables[0].scope, func.value.value, DEPTH):
            return None
        kinds = {self._names.of(each) for each in self._items(table, key)}
        return kinds.pop() if len(kinds) == 1 else None

    def _added(self, scope: Scope, key: str, depth: int) -> list[Origin | None]:
        """Origins of what code in a scope puts into a container after it was made."""
        found: list[Origin | None] = []
        for target in self._tree.within(scope, cst.AssignTarget):
            held = target.target
            assign = self._tree.parent(target)
            if (
                isinstance(held, cst.Subscript)
                and self._names.key(held.value) == key
                and isinstance(assign, cst.Assign)
            ):
                found.extend(self._values.origins_at(assign.value, depth + 1))
        for call in self._tree.within(scope, cst.Call):
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value in _GROWING and self._names.key(func.value) == key:
                single = func.attr.value in {"append", "add"} and len(call.args) == 1
                found.extend(self._values.origins_at(call.args[0].value, depth + 1) if single else [None])
        return found

    def _of_container(
        self, value: cst.CSTNode | None, path: tuple[int, ...], depth: int, key: object, empty: object = ()
    ) -> list[Origin | None]:
        """Origins of the items of `value[path]`; an empty display is out of sight unless something fills it."""
        if isinstance(value, cst.Call):
            callee = self._hooks.callee(value)
            returns = self._values.returns(callee) if callee is not None and depth <= DEPTH else []
            if self._values.is_optimizers(value) and not path:
                return [Origin(OPTIMIZER, value)]
            if self._names.call(value) == "collections.defaultdict" and len(value.args) == 1 and not path:
                return self._made_by_default(value.args[0].value, depth)
            return [o for each in returns for o in self._of_container(each, path, depth + 1, key)] or [None]
        if path:
            inner = item_of(value, path[0]) if isinstance(value, (cst.List, cst.Tuple)) else None
            return self.of_items(inner, depth + 1, key) if inner is not None and not path[1:] else [None]
        if isinstance(value, (cst.List, cst.Tuple, cst.Dict, cst.Set)):
            held = [origin for each in self._items(value, key) for origin in self._values.origins_at(each, depth + 1)]
            return held or ([] if empty and not value.elements else [None])
        if isinstance(value, (cst.ListComp, cst.SetComp, cst.GeneratorExp)):
            return self._values.origins_at(value.elt, depth + 1)
        if isinstance(value, cst.DictComp):
            return self._values.origins_at(value.value, depth + 1)
        if isinstance(value, cst.Name):
            return self.of_items(value, depth + 1, key)
        if isinstance(value, cst.Attribute) and depth <= DEPTH:
            node = self._classes.self_class(value.value)
            sources = self._classes.attribute_sources(node, value.attr.value) if node is not None else []
            if node is not None and len(sources) == 1:
                added = self._added(node, f"self.{value.attr.value}", depth)
                return [*self._of_container(*sources[0], depth + 1, key, empty=added), *added]
        return [None]

    def _made_by_default(self, factory: cst.BaseExpression, depth: int) -> list[Origin | None]:
        """Origins of what a `defaultdict` makes for a key it lacks, with a class of this file or a lambda."""
        if isinstance(factory, cst.Lambda):
            return self._values.origins_at(factory.body, depth + 1)
        name = self._names.of(factory)
        return [Origin(name) if name and self._classes.local(name) is not None else None]

    def _items(
        self, display: cst.List | cst.Tuple | cst.Dict | cst.Set, key: object
    ) -> list[cst.BaseExpression | None]:
        """The items of a display that `display[key]` can be, all of them for an unknown key; None for those that a
        starred item brings."""
        if isinstance(display, cst.Dict):
            starred: list[cst.BaseExpression | None] = [
                None for each in display.elements if isinstance(each, cst.StarredDictElement)
            ]
            pairs = [(self._names.constant(e.key), e.value) for e in display.elements if isinstance(e, cst.DictElement)]
            return starred + [value for known, value in pairs if key is UNKNOWN or known is UNKNOWN or known == key]
        if isinstance(key, int) and not isinstance(display, cst.Set):
            return [item_of(display, key)]
        return [each.value if isinstance(each, cst.Element) else None for each in display.elements]


def item_of(display: cst.List | cst.Tuple, place: int) -> cst.BaseExpression | None:
    """The item at a place of a display, None if there is none or a starred item hides it."""
    elements = display.elements
    before = elements[: place + 1] if place >= 0 else elements[place:]
    if not -len(elements) <= place < len(elements) or any(isinstance(each, cst.StarredElement) for each in before):
        return None
    return elements[place].value
