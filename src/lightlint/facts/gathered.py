"""What becomes of the lists that a class gathers in its attributes: whether code reads them whole, and whether it empties them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import dotted_name

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_EMPTYING = {"clear", "pop", "popleft", "popitem", "remove"}
_NO_AGGREGATE = re.compile(r"plot|draw|matplotlib|json|pickle|save|write|print|len$|append|extend")
_ANEW = {"collections.defaultdict", "builtins.list"}
_GATHERERS = {*_ANEW, "builtins.dict"}


class Gathered:
    """The gathering attributes of the classes of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._tree = facts.tree
        self._names = facts.names
        self._classes = facts.classes
        self._hooks = facts.hooks

    def makes_lists_anew(self, name: str, family: tuple[cst.ClassDef, ...]) -> bool:
        """Whether an attribute is a list, or a dict that makes the list of a key when it is asked for."""
        made = [value for node in family for value in self._classes.attribute_values(node, name)]
        return all(isinstance(each, cst.List) or self._names.call(each) in _ANEW for each in made)

    def is_emptied(self, name: str, family: tuple[cst.ClassDef, ...]) -> bool:
        """Whether anything may empty or replace the list, or it is none that starts empty in `__init__`."""
        sources = [
            value
            for node in family
            for value, path in self._classes.attribute_sources(node, name)
            if value and not path
        ]
        if not sources or not all(map(self._is_empty, sources)):
            return True
        changes = [*self._tree.all(cst.AssignTarget, cst.AnnAssign), *self._tree.all(cst.AugAssign, cst.Del)]
        for target in changes:
            function = self._tree.function(target)
            names = [each for each in self._tree.within(target.target, cst.Attribute) if each.attr.value == name]
            if (
                names
                and (function is None or function.name.value != "__init__")
                and self._tree.class_of(target) is None
            ):
                return True
        aliases = self._aliases(name)
        return any(self._empties(call, name) or self._empties_alias(call, aliases) for call in self._tree.all(cst.Call))

    def _aliases(self, name: str) -> frozenset[str]:
        """The names that the list, or what a loop takes out of it, has elsewhere."""
        loops = [each for each in self._tree.all(cst.For, cst.CompFor) if self._names_it(each.iter, name)]
        assigns = [each for each in self._tree.all(cst.Assign) if self._names_it(each.value, name)]
        targets = [each.target for each in loops] + [target.target for each in assigns for target in each.targets]
        found = [each for target in targets for each in self._tree.within(target, cst.Name)]
        return frozenset(each.value for each in found if not isinstance(self._tree.parent(each), cst.Attribute))

    def _names_it(self, value: cst.BaseExpression, name: str) -> bool:
        return any(each.attr.value == name for each in self._tree.within(value, cst.Attribute))

    def _empties_alias(self, call: cst.Call, aliases: frozenset[str]) -> bool:
        root = dotted_name(call.func) or self._names.key(
            call.func.value if isinstance(call.func, cst.Attribute) else None
        )
        return self._names.method(call) in _EMPTYING and re.split(r"[.\[]", root)[0] in aliases

    def _is_empty(self, value: cst.BaseExpression) -> bool:
        if isinstance(value, cst.List):
            return not value.elements
        if isinstance(value, cst.Dict):
            return all(isinstance(each.value, cst.List) and not each.value.elements for each in value.elements)
        return isinstance(value, cst.Call) and self._names.call(value) in _GATHERERS

    def _empties(self, call: cst.Call, name: str) -> bool:
        """Whether a call may empty the list: by a method of it, by setting attributes by name, or in code it is handed to."""
        method = self._names.method(call)
        words = dotted_name(call.func).split(".")
        held = [each for each in self._tree.within(call.func, cst.Attribute) if each.attr.value == name]
        if method in {"setattr", "delattr", "vars"} or "__dict__" in words or (method in _EMPTYING and held):
            return True
        handed = any(isinstance(arg.value, cst.Attribute) and arg.value.attr.value == name for arg in call.args)
        if not handed:
            return False
        callee = self._hooks.callee(call)
        known = self._names.of(call.func) or ""
        outside = "." in known and not known.startswith(f"{self._names.module}.")
        if callee is not None:
            return self._may_empty(callee)
        return not outside and method not in {"append", "extend", "update"}

    def _may_empty(self, function: cst.FunctionDef) -> bool:
        """Whether a function empties or sets something."""
        calls = self._tree.within(function, cst.Call)
        changes = [
            each for each in self._tree.within(function, cst.AssignTarget) if isinstance(each.target, cst.Subscript)
        ]
        named = any(re.search("clear|pop|reset", self._names.method(call)) for call in calls)
        return named or bool(changes) or bool(self._tree.within(function, cst.Del))

    def takes_all(self, use: cst.Attribute) -> bool:
        """Whether a use takes all items together: given to a library's function, or looped over; of a dict's lists, each."""
        loop = self._loop_over_items(use)
        if loop is None:
            return self._takes_all(use)
        names = {each.value for each in self._tree.within(loop.target, cst.Name)}
        room = self._tree.parent(loop) if isinstance(loop, cst.CompFor) else loop
        inside = self._tree.within(room, cst.Name) if room is not None else []
        return any(each.value in names and self._takes_all(each, keys=False) for each in inside)

    def _loop_over_items(self, use: cst.Attribute) -> cst.For | cst.CompFor | None:
        """The loop over `self.x.items()` or `self.x.values()` in whose head a use stands."""
        method = self._tree.parent(use)
        call = self._tree.parent(method) if isinstance(method, cst.Attribute) else None
        if not isinstance(call, cst.Call) or self._names.method(call) not in {"items", "values"}:
            return None
        loop = self._tree.parent(call)
        return loop if isinstance(loop, (cst.For, cst.CompFor)) and loop.iter is call else None

    def _takes_all(self, held: cst.CSTNode, *, keys: bool = True) -> bool:
        """Whether what stands around a list, or around the list under a key of a dict, takes all of its items."""
        above = self._tree.parent(held)
        while keys and isinstance(above, cst.Subscript) and above.value is held:
            held, above = above, self._tree.parent(above)
            indices = [each.slice for each in held.slice]
            if any(not isinstance(each, cst.Index) or self._is_number(each.value) for each in indices):
                return False
        if isinstance(above, (cst.For, cst.CompFor)):
            return above.iter is held
        call = self._tree.parent(above) if isinstance(above, cst.Arg) else None
        if isinstance(call, cst.Call) and self._hooks.callee(call) is not None:
            return True
        name = self._names.call(call) if isinstance(call, cst.Call) else None
        return bool(name) and "." in (name or "") and not _NO_AGGREGATE.search(name or "")

    def _is_number(self, index: cst.BaseExpression) -> bool:
        return isinstance(self._names.constant(index), int)
