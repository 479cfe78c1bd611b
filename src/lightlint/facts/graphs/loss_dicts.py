"""Dicts of losses: whether what lies in one carries a graph, for `for name, loss in losses.items()` and `losses[name]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.tree import Loop
from lightlint.facts.graphs.autograd import Graph, Recorded, is_told_to_keep, joined, sum_terms
from lightlint.facts.graphs.held_keys import surely_held
from lightlint.facts.tensors.results import Results

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_VIEWS = {"items", "values", "keys"}
_CUTTING = {"item", "detach", "detach_", "float", "int", "tolist", "numpy", "clear", "pop"}
_DICTS = {"builtins.dict", "builtins.dict.fromkeys", "collections.defaultdict", "collections.OrderedDict"}
_DEPTH = 6


class LossDicts:
    """The dicts of losses of one file."""

    def __init__(self, facts: Linked, recorded: Recorded) -> None:
        self._facts = facts
        self._recorded = recorded
        self._tree = facts.tree
        self._names = facts.names

    def loop_over(self, loop: Loop) -> cst.BaseExpression | None:
        """The dict, or what has the views of one, over whose items a loop runs."""
        if isinstance(loop, cst.For) and isinstance(loop.iter, cst.Name):
            return loop.iter if self._is_dict(loop.iter) else None
        func = loop.iter.func if isinstance(loop, cst.For) and isinstance(loop.iter, cst.Call) else None
        views = isinstance(func, cst.Attribute) and func.attr.value in _VIEWS
        return func.value if views and isinstance(func, cst.Attribute) else None

    def of_loop(self, binding: Binding, depth: int) -> Graph | None:
        """What a loop variable that stands for the values of a dict carries."""
        view = self._names.method(binding.value)
        func = binding.value.func if isinstance(binding.value, cst.Call) else None
        if (view, binding.path) not in {("items", (1,)), ("values", ())} or not isinstance(func, cst.Attribute):
            return None
        return self.item(func.value, None, depth)

    def of_item(self, node: cst.Subscript, depth: int) -> Graph | None:
        """What `losses["box"]`, or `losses[name]`, carries; a part of a tensor carries what the tensor does."""
        index = node.slice[0].slice.value if isinstance(node.slice[0].slice, cst.Index) else None
        key = self._names.constant(index)
        other = self._other_dict(index, node.value)
        keys = [key if isinstance(key, str) else None] if other is None else sorted(surely_held(self._facts, other))
        found = next((each for one in keys if (each := self.item(node.value, one, depth)) is not None), None)
        if found is not None:
            return joined(node, [found])
        whole = self._recorded.graphs(node.value, depth)
        return Graph(node, whole[0].freed, tensor=True) if len(whole) == 1 and whole[0].tensor else None

    def _is_dict(self, name: cst.Name) -> bool:
        """Whether a name surely is a dict, by what it is assigned."""
        found = [each for each in self._names.bindings.lookup(name) if each.kind is not Kind.AUGMENT]
        return bool(found) and all(
            each.kind is Kind.ASSIGN
            and not each.path
            and (isinstance(each.value, (cst.Dict, cst.DictComp)) or self._names.call(each.value) in _DICTS)
            for each in found
        )

    def _other_dict(self, index: cst.BaseExpression | None, holder: cst.BaseExpression) -> cst.Name | None:
        """The dict over whose keys an index runs, `for name in sums: sums[name] += losses[name]`, if it is not the holder."""
        found = self._facts.reaching.bindings(index) if isinstance(index, cst.Name) else []
        only = found[0] if len(found) == 1 and found[0].kind is Kind.LOOP and not found[0].path else None
        drawn = only.value if only is not None else None
        if not isinstance(drawn, cst.Name) or not self._is_dict(drawn) or self._names.key(holder) == drawn.value:
            return None
        return drawn

    def item(self, holder: cst.BaseExpression, key: str | None, depth: int) -> Graph | None:
        """What the value under a key of a dict carries, or one of its values where the key is None."""
        if depth > _DEPTH:
            return None
        if isinstance(holder, cst.Dict):
            return self._of_display(holder, key, depth)
        if isinstance(holder, cst.Call):
            return self._returned(holder, (), key, depth)
        if not isinstance(holder, cst.Name) or self._is_cut(holder):
            return None
        backward = self._backward(holder)
        if backward is not None and (key is None or backward[1] & {key, None}):
            return Graph(holder, not is_told_to_keep(self._names, backward[0]), tensor=None in backward[1])
        found = self._facts.reaching.bindings(holder)
        if len(found) != 1 or found[0].kind is not Kind.ASSIGN or found[0].value is None:
            return None
        if found[0].path or isinstance(found[0].value, cst.Call):
            return self._returned(found[0].value, found[0].path, key, depth)
        return self.item(found[0].value, key, depth + 1)

    def _of_display(self, shown: cst.Dict, key: str | None, depth: int) -> Graph | None:
        held = [each for each in shown.elements if isinstance(each, cst.DictElement)]
        values = [each.value for each in held if key is None or self._names.constant(each.key) == key]
        carried = [self._recorded.graphs(value, depth + 1) for value in values]
        graphs = [graph for each in carried for graph in each]
        if not graphs or len(held) != len(shown.elements):
            return None
        return Graph(
            values[0], all(each.freed for each in graphs), all(carried) and all(each.tensor for each in graphs)
        )

    def _returned(self, call: cst.BaseExpression, path: tuple[int, ...], key: str | None, depth: int) -> Graph | None:
        """What every dict agrees on that a function of this file returns, at a place of what it returns."""
        found = [
            self.item(each, key, depth + 1) if each is not None else None
            for each in self._facts.fact(Results).of(call, path)
        ]
        graphs = [each for each in found if each is not None]
        if not graphs or len(graphs) < len(found):
            return None
        return joined(graphs[0].node, graphs)

    def _backward(self, holder: cst.Name) -> tuple[cst.Call, set[str | None]] | None:
        """The backward pass over a sum of a dict's values, in the same function and iteration, and the keys it takes."""
        owner = self._tree.owner(holder)
        flow = self._facts.flow(owner)
        rebound = [site for each in self._names.bindings.lookup(holder) if (site := self._tree.statement(each.site))]
        for call in self._tree.own(owner, cst.Call):
            if not self._facts.loops.is_backward(call) or self._recorded.may_be_off(call):
                continue
            around = self._tree.loops(call)[:1]
            if around and around[0] not in self._tree.loops(holder):
                continue
            ways = ((call, holder), (holder, call))
            met = (
                any(flow.reaches_in_same_iteration(around[0], a, [b], avoiding=rebound) for a, b in ways)
                if around
                else any(flow.reaches(a, [b], avoiding=rebound) for a, b in ways)
            )
            taken = self._taken(self._recorded.terms(call), holder) if met else set()
            if taken:
                return call, taken
        return None

    def _taken(self, terms: list[cst.BaseExpression], holder: cst.BaseExpression) -> set[str | None]:
        """The keys under which a dict holds terms of a sum, None for all."""
        taken = set[str | None]()
        own = self._names.key(holder)
        for term in self._resolved(terms):
            if isinstance(term, cst.Subscript) and own and self._names.key(term.value) == own:
                keys = [
                    self._names.constant(each.slice.value) for each in term.slice if isinstance(each.slice, cst.Index)
                ]
                taken |= {each for each in keys if isinstance(each, str)}
            elif self._names.call(term) == "builtins.sum" and isinstance(term, cst.Call) and self._sums(term, own):
                taken.add(None)
            elif isinstance(term, cst.Name):
                taken |= self._taken_beside(term, holder)
                shown = holder.elements if isinstance(holder, cst.Dict) else ()
                for each in shown:
                    if isinstance(each, cst.DictElement) and self._names.key(each.value) == term.value:
                        key = self._names.constant(each.key)
                        taken |= {key} if isinstance(key, str) else set()
        return taken

    def _taken_beside(self, term: cst.Name, holder: cst.BaseExpression) -> set[str | None]:
        """As `_taken`, where one call returned the sum beside the dict: `loss, losses = criterion(...)`."""
        sums = self._facts.reaching.bindings(term)
        dicts = self._facts.reaching.bindings(holder) if isinstance(holder, cst.Name) else []
        if len(sums) != 1 or len(dicts) != 1 or sums[0].value is None or sums[0].value is not dicts[0].value:
            return set()
        if not sums[0].path or not dicts[0].path or not isinstance(sums[0].value, cst.Call):
            return set()
        results = self._facts.fact(Results)
        pairs = list(
            zip(results.of(sums[0].value, sums[0].path), results.of(dicts[0].value, dicts[0].path), strict=True)
        )
        found = [
            self._taken([*sum_terms(whole)], held) if whole is not None and held is not None else set()
            for whole, held in pairs
            if not (isinstance(held, cst.Name) and self._is_cut(held))
        ]
        return set.intersection(*found) if found and len(found) == len(pairs) else set()

    def _resolved(self, terms: list[cst.BaseExpression]) -> Iterator[cst.BaseExpression]:
        """Terms of a sum, and those of the names among them."""
        pending, seen = list(terms), set[str]()
        while pending:
            term = pending.pop()
            yield term
            if isinstance(term, cst.Name) and term.value not in seen:
                seen.add(term.value)
                made = [each.value for each in self._facts.reaching.bindings(term) if each.value and not each.path]
                pending += [part for value in made for part in sum_terms(value)]

    def _sums(self, call: cst.Call, own: str) -> bool:
        """Whether a `sum(...)` takes each value of a dict: `sum(losses.values())`, `sum(x for x in losses.values())`."""
        given = call.args[0].value if call.args else None
        view = "values"
        if isinstance(given, (cst.GeneratorExp, cst.ListComp)):
            target: cst.BaseExpression = given.for_in.target
            if isinstance(target, cst.Tuple) and len(target.elements) == 2:
                view, target = "items", target.elements[1].value
            plain = isinstance(given.elt, cst.Name) and isinstance(target, cst.Name) and target.value == given.elt.value
            given = given.for_in.iter if plain and not given.for_in.ifs else None
        func = given.func if isinstance(given, cst.Call) else None
        return isinstance(func, cst.Attribute) and func.attr.value == view and self._names.key(func.value) == own

    def _is_cut(self, holder: cst.Name) -> bool:
        """Whether the function may take something out of the graphs that a dict holds: by an item, or by a call on it."""
        owner, own = self._tree.owner(holder), holder.value
        for assign in self._tree.own(owner, cst.Assign):
            items = [each.target for each in assign.targets if isinstance(each.target, cst.Subscript)]
            if any(self._names.key(each.value) == own for each in items) and self._cuts(assign.value):
                return True
        return any(
            self._names.method(call) in _CUTTING | {"update"}
            and isinstance(call.func, cst.Attribute)
            and self._names.key(call.func.value) == own
            for call in self._tree.own(owner, cst.Call)
        )

    def _cuts(self, value: cst.BaseExpression) -> bool:
        return any(self._names.method(call) in _CUTTING for call in self._tree.within(value, cst.Call))
