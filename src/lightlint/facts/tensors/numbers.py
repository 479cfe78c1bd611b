"""Which values surely are plain numbers of Python: through names, functions, attributes and parts of tuples and dicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.project.across import elsewhere
from lightlint.facts.tensors.results import Results
from lightlint.facts.values.containers import item_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lightlint.facts.linked import Linked

    # a value, None for one out of sight, with the facts of its file and the part of it that is meant
    Source = tuple[Linked, cst.BaseExpression | None, "Path"]

_DEPTH = 10
_MAKING = {"builtins.float", "builtins.int", "builtins.len", "builtins.round", "time.time", "time.perf_counter"}
_OF_NUMBERS = {"builtins.abs", "builtins.max", "builtins.min", "builtins.sum"}
_METHODS = {"item", "numel", "dim"}

# which part of a value: places in a tuple, keys of a dict
Path = tuple[int | str, ...]


class Numbers:
    """The plain numbers of one file; what is out of sight is none."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._names = facts.names
        self._known: dict[tuple[int, Path], bool] = {}

    def is_number(self, value: cst.BaseExpression | None, path: Path = (), depth: int = 0) -> bool:
        """Whether a value, or its part at `path`, surely is a number, whatever way the program takes."""
        if value is None or depth > _DEPTH:
            return False
        key = (id(value), path)
        if key not in self._known:
            self._known[key] = False  # what comes back to itself proves nothing
            self._known[key] = self._is_number(value, path, depth + 1)
        return self._known[key]

    def _is_number(self, value: cst.BaseExpression, path: Path, depth: int) -> bool:
        match value:
            case cst.Integer() | cst.Float():
                return not path
            case cst.UnaryOperation():
                return self.is_number(value.expression, path, depth)
            case cst.BinaryOperation():
                return not path and self.is_number(value.left, (), depth) and self.is_number(value.right, (), depth)
            case cst.IfExp():
                return self.is_number(value.body, path, depth) and self.is_number(value.orelse, path, depth)
            case cst.NamedExpr():
                return self.is_number(value.value, path, depth)
            case cst.Tuple() | cst.List():
                first = path[0] if path else None
                return isinstance(first, int) and self.is_number(item_of(value, first), path[1:], depth)
            case cst.Dict():
                return bool(path) and self._all(self._under(value, path[0]), path[1:], depth)
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                place = self._names.constant(index)
                return isinstance(place, (int, str)) and self.is_number(value.value, (place, *path), depth)
            case cst.Name():
                return self._is_named(value, path, depth)
            case cst.Attribute():
                return self._all(self._kept(value), path, depth)
            case cst.Call():
                return self._is_given(value, path, depth)
        return False

    def _all(self, sources: Iterator[Source], path: Path, depth: int) -> bool:
        """Whether there are sources, and each is a number at a path within its own."""
        found = [facts.fact(Numbers).is_number(value, (*own, *path), depth) for facts, value, own in sources]
        return bool(found) and all(found)

    def _is_named(self, name: cst.Name, path: Path, depth: int) -> bool:
        if not path and isinstance(self._names.constant(name), (int, float)):
            return True
        found = self._facts.reaching.bindings(name)
        if any(each.kind is Kind.AUGMENT for each in found):
            found = self._names.bindings.lookup(name)
        if path and not self._all_set(name, path, depth):
            return False
        return bool(found) and all(self._binds(each, path, depth) for each in found)

    def _all_set(self, name: cst.Name, path: Path, depth: int) -> bool:
        """Whether all that the function around a name puts into what it holds, at a path, are numbers."""
        tree, owner = self._facts.tree, self._facts.tree.owner(name)
        for assign in tree.own(owner, cst.Assign):
            for target in (each.target for each in assign.targets):
                if not isinstance(target, cst.Subscript) or self._names.key(target.value) != name.value:
                    continue
                index = target.slice[0].slice
                place = self._names.constant(index.value) if isinstance(index, cst.Index) else None
                other = isinstance(place, (int, str)) and place != path[0]
                if not other and not self.is_number(assign.value, path[1:], depth):
                    return False
        return not any(
            self._names.method(call) in {"update", "setdefault"} and self._names.key(call.func.value) == name.value
            for call in tree.own(owner, cst.Call)
            if isinstance(call.func, cst.Attribute)
        )

    def _binds(self, binding: Binding, path: Path, depth: int) -> bool:
        match binding.kind:
            case Kind.ASSIGN:
                return self.is_number(binding.value, (*binding.path, *path), depth)
            case Kind.AUGMENT:
                return not path and self.is_number(binding.value, (), depth)
            case Kind.LOOP:
                drawn = self._names.call(binding.value)
                return not path and (binding.path, drawn) in {((), "builtins.range"), ((0,), "builtins.enumerate")}
            case Kind.PARAMETER if isinstance(binding.scope, cst.FunctionDef):
                return self._is_passed(binding.scope, binding, path, depth)
        return False

    def _is_passed(self, function: cst.FunctionDef, binding: Binding, path: Path, depth: int) -> bool:
        """Whether every call in sight gives a number for a parameter."""
        hooks = self._facts.hooks
        calls = [*hooks.calls_of.get(function, ()), *hooks.constructions.get(function, ())]
        if not calls or hooks.of(function) or any(self._names.has_star(call) for call in calls):
            return False
        given = [hooks.given(function, call, binding.name) or binding.value for call in calls]
        return all(self.is_number(each, path, depth) for each in given)

    def _kept(self, attribute: cst.Attribute) -> Iterator[Source]:
        """What objects of this file's classes keep in an attribute."""
        classes, name = self._facts.classes, attribute.attr.value
        own = classes.self_class(attribute.value)
        nodes = (
            [own]
            if own is not None
            else [classes.local(each.name) for each in self._facts.values.origins(attribute.value)]
        )
        for node in nodes:
            sources = classes.attribute_sources(node, name) if node is not None else []
            for value, path in sources or [(None, ())]:
                yield self._facts, value, path

    def _under(self, shown: cst.Dict, key: int | str) -> Iterator[Source]:
        """The value under a key of a dict that is written out, and None for what it takes from another."""
        for each in shown.elements:
            if not isinstance(each, cst.DictElement):
                yield self._facts, None, ()
            elif self._names.constant(each.key) == key:
                yield self._facts, each.value, ()

    def _is_given(self, call: cst.Call, path: Path, depth: int) -> bool:
        """Whether a call gives a number."""
        name = self._names.call(call) or ""
        if not path and (name in _MAKING or name.startswith("math.")):
            return True
        if not path and isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS and not call.args:
            return True
        if not path and name in _OF_NUMBERS:
            return bool(call.args) and all(self.is_number(each.value, (), depth) for each in call.args)
        if name == "builtins.dict":
            values = [each.value for each in call.args if each.keyword and each.keyword.value == (path or [""])[0]]
            return bool(values) and self.is_number(values[0], path[1:], depth)
        return self._all(self._returned(call, name), path, depth)

    def _returned(self, call: cst.Call, name: str) -> Iterator[Source]:
        """What the functions of the project return that a call runs, `forward` for a call of a module."""
        found = [(self._facts, each) for each in self._facts.fact(Results).functions(call)] or [
            *self._elsewhere(call, name)
        ]
        for facts, function in found:
            for value in facts.values.returns(function) or [None]:
                yield facts, value, ()

    def _elsewhere(self, call: cst.Call, name: str) -> Iterator[tuple[Linked, cst.FunctionDef]]:
        """As `_returned`, of other files."""
        place = elsewhere(self._facts, name, self._facts.path.parent, "return")
        if place is not None:
            yield place.facts, place.function
            return
        made = [self._facts.of_class(each.name) for each in self._facts.values.origins(call.func)]
        methods = [(each[0], each[0].classes.method(each[1], "forward")) for each in made if each is not None]
        if len(methods) == len(made):
            yield from ((facts, forward) for facts, forward in methods if forward is not None)
