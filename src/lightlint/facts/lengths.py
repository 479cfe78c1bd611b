"""How many items the lists of one file hold, as far as what they are made from is in sight."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.contents import Contents, spelled
from lightlint.facts.tree import Loop

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_CHANGING = {"append", "extend", "insert", "update", "pop", "setdefault", "remove", "clear"}
_AS_LONG = {
    "builtins.enumerate",
    "builtins.list",
    "builtins.tuple",
    "builtins.sorted",
    "builtins.reversed",
    "tqdm.tqdm",
}
_VIEWS = {"items", "keys", "values"}
_DEPTH = 5

Items = list[tuple[cst.BaseExpression, int]]
"""The expressions that make a list's items, each with how many it makes."""


class Lengths:
    """The lists of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names
        self._tree = facts.tree
        self._contents = Contents(facts.tree, facts.names)

    def items(self, value: cst.BaseExpression, depth: int = 0) -> Items | None:
        """What a list or tuple holds: written there, made by a comprehension, appended later; None if some is out of sight."""
        match value:
            case _ if depth > _DEPTH:
                return None
            case cst.List() | cst.Tuple():
                known = spelled(value)
                return [(each, 1) for each in known] if known is not None else None
            case cst.ListComp(for_in=cst.CompFor(ifs=[], inner_for_in=None, iter=source)):
                times = self.length(source, depth + 1)
                return [(value.elt, times)] if times is not None else None
            case cst.Name():
                return self._named(value, depth)
            case cst.Attribute():
                return self._held(value, depth)
        return None

    def length(self, value: cst.BaseExpression, depth: int = 0) -> int | None:
        """Through how many items a loop over a value goes."""
        if isinstance(value, cst.Call) and depth <= _DEPTH:
            return self._of_call(value, depth)
        if isinstance(value, cst.Dict):
            return len(value.elements) if all(isinstance(e, cst.DictElement) for e in value.elements) else None
        if isinstance(value, cst.Name) and isinstance(display := self._bound(value), cst.Dict):
            return None if self.is_changed(value.value) else self.length(display)
        held = self.items(value, depth)
        return sum(times for _, times in held) if held is not None else None

    def is_changed(self, name: str) -> bool:
        """Whether a list or dict of that name is changed anywhere."""
        targets = [each.target for each in self._tree.all(cst.AssignTarget, cst.Del)]
        calls = [each.func for each in self._tree.all(cst.Call)]
        changed = [each.value for each in targets if isinstance(each, cst.Subscript)]
        changed += [each.value for each in calls if isinstance(each, cst.Attribute) and each.attr.value in _CHANGING]
        changed += [each.target for each in self._tree.all(cst.AugAssign)]
        return any(self._names.key(each) == name for each in changed)

    def _of_call(self, call: cst.Call, depth: int) -> int | None:
        name, given = self._names.call(call), [arg.value for arg in call.args]
        if name == "builtins.range" and len(given) == 1:
            stop = self._names.constant(given[0])
            return stop if isinstance(stop, int) else None
        if name in _AS_LONG and given:
            return self.length(given[0], depth + 1)
        if name == "builtins.zip" and given:
            lengths = [self.length(each, depth + 1) for each in given]
            known = [each for each in lengths if each is not None]
            return min(known) if len(known) == len(lengths) else None
        views = isinstance(call.func, cst.Attribute) and call.func.attr.value in _VIEWS and not given
        return self.length(call.func.value, depth + 1) if views and isinstance(call.func, cst.Attribute) else None

    def _bound(self, name: cst.Name) -> cst.BaseExpression | None:
        """The one value that a name is bound to."""
        found = [each for each in self._names.bindings.lookup(name) if each.kind is not Kind.AUGMENT]
        plain = len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path
        return found[0].value if plain else None

    def _named(self, name: cst.Name, depth: int) -> Items | None:
        made = self._bound(name)
        first = self.items(made, depth + 1) if made is not None else None
        if made is None or first is None or self._tree.loops(made):
            return None
        later = self._contents.later(made)
        counts = [self._times(each, depth) for each in later or ()]
        known = [(each, times) for each, times in zip(later or (), counts, strict=True) if times is not None]
        return [*first, *known] if later is not None and len(known) == len(later) else None

    def _times(self, added: cst.BaseExpression, depth: int) -> int | None:
        """How often a statement that adds an item surely runs: the product of the lengths of the loops around it."""
        loops = self._tree.loops(added)
        tests = self._facts.conditions(added)
        lengths = [self._turns(each, depth) for each in loops]
        known = [each for each in lengths if each is not None]
        return prod(known) if not tests and len(known) == len(lengths) else None

    def _turns(self, loop: Loop, depth: int) -> int | None:
        leaves = [*self._tree.own(loop.body, cst.Break, cst.Continue), *self._tree.own(loop.body, cst.Return)]
        return self.length(loop.iter, depth + 1) if isinstance(loop, cst.For) and not leaves else None

    def _held(self, attribute: cst.Attribute, depth: int) -> Items | None:
        """The items of a list that an object keeps, wherever its class sets it to lists of one length."""
        node, name = self._facts.classes.self_class(attribute.value), attribute.attr.value
        sources = self._facts.classes.attribute_sources(node, name) if node is not None else []
        found = [self.items(value, depth + 1) if value and not path else None for value, path in sources]
        known = [each for each in found if each is not None]
        lengths = {sum(times for _, times in each) for each in known}
        whole = len(known) == len(found) and len(lengths) == 1
        return (
            known[0]
            if whole and not self._facts.values.parts.is_set_outside(name) and not self.is_changed(f"self.{name}")
            else None
        )
