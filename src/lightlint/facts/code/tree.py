"""An index of one parsed module: every node that means something, in source order, with its parent.

One walk over the semantic fields of the nodes (whitespace and punctuation are skipped) costs a tenth of
`module.visit`; parents, subtrees and nodes by type are then look-ups, so that no check walks the tree again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Set
from typing import Any, TypeVar, overload

import libcst as cst

from lightlint.facts.code.fields import IS_NODE, VALUES

Node = TypeVar("Node", bound=cst.CSTNode)
Other = TypeVar("Other", bound=cst.CSTNode)
Scope = cst.Module | cst.ClassDef | cst.FunctionDef | cst.Lambda | cst.BaseComp
Function = cst.FunctionDef | cst.Lambda
Loop = cst.For | cst.While

_FRAMES = {cst.FunctionDef, cst.Lambda, cst.ClassDef}
_LOOPS = {cst.For, cst.While}
_LEAVES = {cst.Name, cst.Integer, cst.Float, cst.SimpleString, cst.FormattedStringText}  # the frequent ones
_SCOPES = {*_FRAMES, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp}


def _add(
    node: cst.CSTNode,
    parent: int,
    nodes: list[cst.CSTNode],
    parents: list[int],
    last: list[int],
    by_type: dict[type, list[int]],
) -> None:
    """Enter a node and all below it in the lists of a tree."""
    index = len(nodes)
    nodes.append(node)
    parents.append(parent)
    last.append(index)
    kind = type(node)
    by_type[kind].append(index)
    for value in VALUES[kind](node):
        kind = type(value)
        if kind in _LEAVES:  # half of all nodes, entered without a call
            leaf = len(nodes)
            nodes.append(value)
            parents.append(index)
            last.append(leaf)
            by_type[kind].append(leaf)
        elif kind is list or kind is tuple:
            for item in value:
                if IS_NODE[type(item)]:
                    _add(item, index, nodes, parents, last, by_type)
        elif IS_NODE[kind]:
            _add(value, index, nodes, parents, last, by_type)
    last[index] = len(nodes) - 1


class Tree:
    """The nodes of a module by position, type and ancestry. Built once per file, then read only."""

    def __init__(self, module: cst.Module) -> None:
        self.module = module
        self.nodes: list[cst.CSTNode] = []
        self._index: dict[int, int] = {}  # by `id`: libcst hashes nodes in Python; they live as long as the list does
        self._parents: list[int] = []
        self._by_type: dict[type, list[int]] = defaultdict(list)
        self._last: list[int] = []  # of each node the last one below it
        _add(module, -1, self.nodes, self._parents, self._last, self._by_type)
        self._index.update(zip(map(id, self.nodes), range(len(self.nodes)), strict=True))
        self._frames = self._spread(_FRAMES)  # of each node the nearest function, lambda or class around it
        self._scopes = self._spread(_SCOPES)  # likewise the nearest node that has names of its own
        self._scope_of: dict[int, Scope] = {}

    def _spread(self, kinds: Set[type]) -> list[int]:
        """Of each node the nearest one of some types around it, -1 for none."""
        table = [-1] * len(self.nodes)
        for index in sorted(index for kind in kinds for index in self._by_type.get(kind, ())):
            inside = self._last[index] - index
            table[index + 1 : index + 1 + inside] = [index] * inside
        return table

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node directly above, None for the module."""
        above = self._parents[self._index[id(node)]]
        return None if above < 0 else self.nodes[above]

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes above a node, nearest first."""
        index = self._parents[self._index[id(node)]]
        while index >= 0:
            yield self.nodes[index]
            index = self._parents[index]

    def descend(self, enters: Callable[[cst.CSTNode], bool]) -> None:
        """Show the nodes in source order, but for those below one that is not entered."""
        index, behind = 0, len(self.nodes)
        while index < behind:
            index = index + 1 if enters(self.nodes[index]) else self._last[index] + 1

    def order(self, node: cst.CSTNode) -> int:
        """Position in source order: a smaller number stands earlier."""
        return self._index[id(node)]

    def contains(self, outer: cst.CSTNode, inner: cst.CSTNode) -> bool:
        """Whether `inner` is `outer` or lies below it."""
        start = self._index[id(outer)]
        return start <= self._index[id(inner)] <= self._last[start]

    @overload
    def all(self, kind: type[Node], /) -> list[Node]: ...
    @overload
    def all(self, kind: type[Node], other: type[Other], /) -> list[Node | Other]: ...
    def all(self, *kinds: type[cst.CSTNode]) -> list[Any]:
        """Every node of some types, in source order."""
        return self._select(self.module, kinds)

    def of_types(self, *kinds: type[cst.CSTNode]) -> list[cst.CSTNode]:
        """Every node of any number of types, in source order."""
        return self._select(self.module, kinds)

    @overload
    def within(self, outer: cst.CSTNode, kind: type[Node], /) -> list[Node]: ...
    @overload
    def within(self, outer: cst.CSTNode, kind: type[Node], other: type[Other], /) -> list[Node | Other]: ...
    def within(self, outer: cst.CSTNode, *kinds: type[cst.CSTNode]) -> list[Any]:
        """The nodes of some types in a subtree, in source order, the root included."""
        return self._select(outer, kinds)

    def _select(self, outer: cst.CSTNode, kinds: tuple[type[cst.CSTNode], ...]) -> list[Any]:
        return [self.nodes[index] for index in self._within(self._index[id(outer)], kinds)]

    def _within(self, low: int, kinds: tuple[type[cst.CSTNode], ...]) -> list[int]:
        """The places of the nodes of some types in the subtree of the one at `low`."""
        behind = self._last[low] + 1
        found: list[int] = []
        for kind in kinds:
            indices = self._by_type.get(kind, [])
            found.extend(indices[bisect_left(indices, low) : bisect_left(indices, behind)])
        if len(kinds) > 1:
            found.sort()
        return found

    @overload
    def own(self, scope: cst.CSTNode, kind: type[Node], /) -> list[Node]: ...
    @overload
    def own(self, scope: cst.CSTNode, kind: type[Node], other: type[Other], /) -> list[Node | Other]: ...
    def own(self, scope: cst.CSTNode, *kinds: type[cst.CSTNode]) -> list[Any]:
        """As `within`, leaving out what lies in functions, lambdas and classes nested in `scope`."""
        start, frames = self._index[id(scope)], self._frames
        frame = start if type(scope) in _FRAMES else frames[start]
        found = (index for index in self._within(start, kinds) if frames[index] == frame and index != start)
        return [self.nodes[index] for index in found]

    def _around(self, node: cst.CSTNode, table: list[int]) -> Iterator[cst.CSTNode]:
        index = table[self._index[id(node)]]
        while index >= 0:
            yield self.nodes[index]
            index = table[index]

    def scope(self, node: cst.CSTNode) -> Scope:
        """The scope in which a node is evaluated: defaults, decorators and bases belong to the scope outside."""
        index = self._index[id(node)]
        known = self._scope_of.get(index)
        if known is None:
            known = self._scope_of[index] = self._find_scope(node)
        return known

    def _find_scope(self, node: cst.CSTNode) -> Scope:
        for above in self._around(node, self._scopes):
            if type(above) is cst.FunctionDef or type(above) is cst.Lambda:
                if self.contains(above.body, node) or self._in_head(node, above):
                    return above
            elif type(above) is cst.ClassDef:
                if self.contains(above.body, node):
                    return above
            elif isinstance(above, cst.BaseComp) and not self._first_iterable(node, above):
                return above
        return self.module

    def _in_head(self, node: cst.CSTNode, function: Function) -> bool:
        """Whether a node stands in a function's parameter list and belongs to its scope."""
        return self.contains(function.params, node) and not self._outside_parameters(node, function)

    def _outside_parameters(self, node: cst.CSTNode, function: Function) -> bool:
        """Whether a node in a parameter list is a default or annotation, evaluated outside the function."""
        for above in (node, *self.ancestors(node)):
            if above is function:
                break
            parent = self.parent(above)
            if isinstance(parent, cst.Param):
                return above is parent.default or above is parent.annotation
        return False

    def _first_iterable(self, node: cst.CSTNode, comprehension: cst.BaseComp) -> bool:
        iterable = comprehension.for_in.iter
        return self.contains(iterable, node)

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The `def` in whose body a node stands."""
        for above in self._around(node, self._frames):
            if isinstance(above, cst.FunctionDef) and self.contains(above.body, node):
                return above
        return None

    def owner(self, node: cst.CSTNode) -> cst.FunctionDef | cst.Module:
        """The `def` in whose body a node stands, or the module."""
        return self.function(node) or self.module

    def class_of(self, function: cst.CSTNode) -> cst.ClassDef | None:
        """The class of which a `def` is a method, or in whose body (not in a method) a node stands."""
        above = next(self._around(function, self._frames), None)
        return above if isinstance(above, cst.ClassDef) else None

    def enclosing_class(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """The innermost class around a node, through any functions."""
        return next((above for above in self._around(node, self._frames) if isinstance(above, cst.ClassDef)), None)

    def loops(self, node: cst.CSTNode) -> list[Loop]:
        """The loops whose body (or `while` test) a node repeats in, innermost first, inside its function."""
        found: list[Loop] = []
        below = node
        for above in self.ancestors(node):
            if type(above) in _FRAMES:  # `isinstance` on libcst's abstract classes is slow where it says no
                break
            if type(above) in _LOOPS and isinstance(above, (cst.For, cst.While)):
                repeats = below is above.body or (isinstance(above, cst.While) and below is above.test)
                if repeats:
                    found.append(above)
            below = above
        return found

    def statement(self, node: cst.CSTNode) -> cst.BaseSmallStatement | cst.BaseCompoundStatement | None:
        """The innermost statement that holds a node."""
        for above in (node, *self.ancestors(node)):
            if isinstance(above, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                return above
        return None
