"""Which values are parts of one data set: what `random_split` gives, and `Subset`s of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind, unpacked

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

SPLIT = "torch.utils.data.random_split"
SUBSET = "torch.utils.data.Subset"
_DEPTH = 4

Root = tuple[object, ...]
"""What parts of one data set have in common, by identity: the split, or the one name the subsets are made from."""


class Splits:
    """The parts of data sets in one file, also those that a function makes and returns together."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._classes = facts.classes

    def beside_name(self, part: cst.Name) -> list[str]:
        """The other names of the same scope that hold a part of what a name holds a part of."""
        found = self._names.bindings.lookup(part)
        root = self._of_name(part, 0)
        scope = self._names.bindings.by_scope.get(found[0].scope, {}) if found else {}
        same = (
            name
            for name, bindings in scope.items()
            if len(bindings) == 1 and bindings[0].kind is Kind.ASSIGN and name != part.value
            if root is not None and self.root(bindings[0].value, bindings[0].path) == root
        )
        return [name for name in same if name.strip("_")]

    def beside_attribute(self, part: cst.Attribute) -> list[str]:
        """As `beside_name`, for attributes of `self`."""
        node = self._classes.self_class(part.value)
        held = dict(self._attributes(node)) if node is not None else {}
        own = self._names.key(part)
        root = held.get(own)
        return [key for key, other in held.items() if root is not None and other == root and key != own]

    def _attributes(self, node: cst.ClassDef) -> Iterator[tuple[str, Root]]:
        """The attributes that a class sets once, to a part, with what it is a part of."""
        for assign in self._tree.within(node, cst.Assign):
            leaves = [leaf for each in assign.targets for leaf in unpacked(each.target, assign.value)]
            for target, value, path in leaves:
                if not isinstance(target, cst.Attribute) or self._classes.self_class(target.value) is not node:
                    continue
                root = self.root(value, path)
                if root is not None and len(self._classes.attribute_sources(node, target.attr.value)) == 1:
                    yield self._names.key(target), root

    def root(self, value: cst.CSTNode | None, path: tuple[int, ...], depth: int = 0) -> Root | None:
        """What `value[path]` surely is a part of, None if it is no part."""
        if depth > _DEPTH:
            return None
        if isinstance(value, cst.Name):
            return self._of_name(value, depth) if not path else None
        if isinstance(value, cst.Tuple) and path:
            plain = all(isinstance(each, cst.Element) for each in value.elements)
            inside = plain and 0 <= path[0] < len(value.elements)
            return self.root(value.elements[path[0]].value, path[1:], depth + 1) if inside else None
        if not isinstance(value, cst.Call):
            return None
        name = self._names.call(value)
        if name == SPLIT:
            return (id(value),) if path else None
        if name == SUBSET:
            return self._source(value) if not path else None
        return self._returned(value, path, depth) if path else None

    def _of_name(self, name: cst.Name, depth: int) -> Root | None:
        found = self._names.bindings.lookup(name)
        only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN else None
        return self.root(only.value, only.path, depth + 1) if only is not None else None

    def _source(self, subset: cst.Call) -> Root | None:
        """The one name, or attribute of `self`, that a `Subset` is made from."""
        source = self._names.argument(subset, "dataset", 0)
        if source is None:
            return None
        if isinstance(source.value, cst.Name):
            found = self._names.bindings.lookup(source.value)
            return (id(found[0].site),) if len(found) == 1 else None
        node = self._classes.self_class(source.value.value) if isinstance(source.value, cst.Attribute) else None
        if node is None or not isinstance(source.value, cst.Attribute):
            return None
        word = source.value.attr.value
        return (id(node), word) if len(self._classes.attribute_sources(node, word)) == 1 else None

    def _returned(self, call: cst.Call, path: tuple[int, ...], depth: int) -> Root | None:
        """As `root`, for a part of what a function of this file returns, which gives none a data set of its own."""
        function = self._facts.hooks.callee(call)
        if function is None or function.decorators:
            return None
        returns = self._facts.values.returns(function)
        targets = (each.target for each in self._tree.within(function, cst.AssignTarget))
        renewed = any(isinstance(each, cst.Attribute) and each.attr.value == "dataset" for each in targets)
        inner = self.root(returns[0], path, depth + 1) if len(returns) == 1 and not renewed else None
        return (id(call), *inner) if inner is not None else None
