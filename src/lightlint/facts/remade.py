"""Loaders that a loop over epochs makes anew in each round, and goes through once before it makes the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.tree import Loop

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_COUNTING = {"builtins.range", "itertools.count", "tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange"}
_BARS = {"builtins.enumerate", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm"}
_DEPTH = 5
_MANY = 2


class Remade:
    """What each round of the loops of one file makes for itself."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._calls_of = facts.steps.calls_of

    def is_remade(self, loader: cst.Call) -> bool:
        """Whether each round of a loop surely makes a loader of the same data, draws it once, and does nothing else with it."""
        loops = [each for each in self._rounds(loader, 0) if self._counts(each) and self._keeps_data(loader, each)]
        return any(self._draws(loader, loop) == 1 for loop in loops) and self._is_in_sight(loader, 0)

    def _keeps_data(self, loader: cst.Call, loop: Loop) -> bool:
        """Whether a round leaves a loader's data set as it is: it binds none, sets no attribute and calls no method of it."""
        dataset = self._facts.loading.dataset(loader)
        parts = self._facts.processes.made_from(dataset) if dataset is not None and self._names.key(dataset) else []
        words = {_last(self._names.key(each)) for each in parts} - {""}
        bodies = self._facts.steps.bodies(loop.body)
        targets = [each.target for body in bodies for each in self._tree.within(body, cst.AssignTarget, cst.AugAssign)]
        called = [each.func for body in bodies for each in self._tree.within(body, cst.Call)]
        rebound = [each for each in targets if not self._facts.conditions(each)]
        held = [each.value for each in (*targets, *called) if isinstance(each, cst.Attribute)]
        return bool(words) and not any(_last(self._names.key(each)) in words for each in (*rebound, *held))

    def _rounds(self, node: cst.CSTNode, depth: int) -> Iterator[Loop]:
        """The innermost loops that come to a node in each round, in its function or around the calls of that."""
        around, function = self._tree.loops(node), self._tree.function(node)
        room = around[0].body if around else function
        if room is None or any(self._tree.contains(room, test) for test, _ in self._facts.conditions(node)):
            return
        if around:
            yield around[0]
        elif function is not None and depth < _DEPTH:
            for call in self._calls_of.get(function, ()):
                yield from self._rounds(call, depth + 1)

    def _counts(self, loop: Loop) -> bool:
        """Whether a loop counts its rounds, or has no end in sight: what goes through folds or data sets is no epoch."""
        if isinstance(loop, cst.While):
            return True
        counted = self._facts.values.iterated(loop.iter)
        return self._names.call(counted) in _COUNTING

    def _draws(self, loader: cst.Call, loop: Loop) -> int:
        """How often a round draws the batches of a loader, many times where a loop inside it does."""
        values = self._facts.values
        drawn = [
            each
            for each in self._tree.all(cst.For)
            if any(origin.call is loader for origin in values.origins(values.iterated(each.iter)))
        ]
        return sum(self._times(each, loop, 0) for each in drawn)

    def _times(self, node: cst.CSTNode, loop: Loop, depth: int) -> int:
        around, function = self._tree.loops(node), self._tree.function(node)
        if around:
            inside = around[0] is loop or self._facts.steps.comes_in(loop, node)
            return (1 if around[0] is loop else _MANY) if inside else 0
        if function is None or depth > _DEPTH:
            return 0 if function is None else _MANY
        return sum(self._times(each, loop, depth + 1) for each in self._calls_of.get(function, ()))

    def _is_in_sight(self, value: cst.CSTNode, depth: int) -> bool:
        """Whether nothing is done with a loader but to loop over it and to read its attributes."""
        above = self._tree.parent(value)
        match above:
            case cst.For() | cst.Attribute():
                return True
            case cst.Assign(targets=[cst.AssignTarget(target=target)]):
                known = depth < _DEPTH and isinstance(target, (cst.Name, cst.Attribute))
                return known and all(self._is_in_sight(each, depth + 1) for each in self._uses(target))
            case cst.Return():
                function = self._tree.function(value)
                calls = self._calls_of.get(function, ()) if function is not None and depth < _DEPTH else ()
                return bool(calls) and all(self._is_in_sight(each, depth + 1) for each in calls)
            case cst.Arg():
                return self._is_taken(above, depth)
        return False

    def _uses(self, bound: cst.CSTNode) -> list[cst.CSTNode]:
        """Where a name is read, or an attribute, of whatever object."""
        if isinstance(bound, cst.Attribute):
            same = [each for each in self._tree.all(cst.Attribute) if each.attr.value == bound.attr.value]
            return [each for each in same if not isinstance(self._tree.parent(each), cst.AssignTarget)]
        word = bound.value if isinstance(bound, cst.Name) else ""
        named = [each for each in self._tree.all(cst.Name) if each.value == word and not self._names.is_word(each)]
        bindings = [(each, self._names.bindings.lookup(each)) for each in named]
        return [
            each
            for each, found in bindings
            if any(self._tree.contains(one.site, bound) for one in found)
            and not any(self._tree.contains(one.site, each) for one in found)
        ]

    def _is_taken(self, arg: cst.Arg, depth: int) -> bool:
        """Whether what takes a loader as an argument only counts its batches, or keeps it in sight."""
        call = self._tree.parent(arg)
        name = self._names.call(call)
        if not isinstance(call, cst.Call) or arg.star or depth > _DEPTH:
            return False
        if name in _BARS or name == "builtins.len":
            return name == "builtins.len" or self._is_in_sight(call, depth + 1)
        made = self._facts.classes.local(name)
        init = self._facts.classes.method(made, "__init__") if made is not None else None
        callee = init if init is not None else self._facts.steps.callee(call)
        parameters = [*callee.params.params, *callee.params.kwonly_params] if callee is not None else []
        taken = [
            each
            for each in parameters
            if callee is not None and self._facts.hooks.given(callee, call, each.name.value) is arg.value
        ]
        return len(taken) == 1 and all(self._is_in_sight(each, depth + 1) for each in self._uses(taken[0].name))


def _last(key: str) -> str:
    """The last word of a name with dots."""
    return key.rpartition(".")[2]
