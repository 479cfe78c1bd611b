from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.tree import Scope

_SPLIT = "torch.utils.data.random_split"
_SUBSET = "torch.utils.data.Subset"


class SubsetsShareTransform(Check):
    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        target = node.target
        subset = self._subset(target)
        if subset is None:
            return
        name, others = self.code.text_of(subset), self._others(subset)
        if others and not self._is_replaced(node, [name, *others]):
            shared = ", ".join(f"`{each}`" for each in others)
            self.report(target, f"`{name}.dataset` is the data set of {shared} too: this changes both")

    def _subset(self, target: cst.BaseExpression) -> cst.BaseExpression | None:
        """What `x.dataset.transform` takes apart: `x`, also where the data set lies deeper (`x.dataset.dataset`)."""
        if not isinstance(target, cst.Attribute) or target.attr.value == "dataset":
            return None
        holder = target.value
        found = None
        while isinstance(holder, cst.Attribute) and holder.attr.value == "dataset":
            found = holder = holder.value
        return found if self.names.key(found) else None

    def _others(self, subset: cst.BaseExpression) -> list[str]:
        """What else draws from the data set of a subset: the other parts of its split, other `Subset`s of it."""
        match subset:
            case cst.Name():
                return self._beside_name(subset)
            case cst.Attribute():
                node = self.classes.self_class(subset.value)
                room, scope = node, node
            case cst.Subscript():
                return self._beside_item(subset)
            case _:
                return []
        return self._beside_attribute(subset, room) if room is not None and scope is not None else []

    def _beside_name(self, subset: cst.Name) -> list[str]:
        found = self.names.bindings.lookup(subset)
        only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN else None
        if only is None:
            return []
        scope: dict[str, list[Binding]] = self.names.bindings.by_scope.get(only.scope, {})
        if only.path and self.names.call(only.value) == _SPLIT:
            same = [name for name, bindings in scope.items() if any(each.value is only.value for each in bindings)]
        elif not only.path and self.names.call(only.value) == _SUBSET:
            source = self._source(only.value, only.scope)
            same = [
                name
                for name, bindings in scope.items()
                if source and len(bindings) == 1 and self._source(bindings[0].value, only.scope) == source
            ]
        else:
            same = []
        return [name for name in same if name != subset.value]

    def _source(self, value: cst.CSTNode | None, scope: Scope) -> str:
        """The one name that a `Subset` is made from."""
        if not isinstance(value, cst.Call) or self.names.call(value) != _SUBSET or not value.args:
            return ""
        source = value.args[0].value
        plain = isinstance(source, cst.Name) and len(self.names.bindings.lookup(source)) == 1
        return self.names.key(source) if plain else ""

    def _beside_item(self, subset: cst.Subscript) -> list[str]:
        """`parts[1]` beside `parts[0]`, where `parts` is a split that is used by its items."""
        parts = subset.value
        found = self.names.bindings.lookup(parts) if isinstance(parts, cst.Name) else []
        if len(found) != 1 or found[0].path or self.names.call(found[0].value) != _SPLIT:
            return []
        key = self.names.key(subset)
        used = [self.names.key(each) for each in self.tree.within(self.tree.owner(subset), cst.Subscript)]
        return sorted({each for each in used if each.startswith(f"{self.names.key(parts)}[") and each != key})

    def _beside_attribute(self, subset: cst.Attribute, room: cst.ClassDef) -> list[str]:
        """`self.val` beside `self.train`, where one split sets both."""
        sources = self.classes.attribute_sources(room, subset.attr.value)
        if len(sources) != 1 or not sources[0][1] or self.names.call(sources[0][0]) != _SPLIT:
            return []
        assigns = [each for each in self.tree.within(room, cst.Assign) if each.value is sources[0][0]]
        leaves = [leaf for each in assigns for leaf in self.tree.within(each.targets[0].target, cst.Attribute)]
        keys = dict.fromkeys(self.names.key(leaf) for leaf in leaves)
        return [key for key in keys if key != self.names.key(subset)]

    def _is_replaced(self, node: cst.AssignTarget, parts: list[str]) -> bool:
        """Whether one of the parts is given a data set of its own."""
        keys = {f"{each}.dataset" for each in parts}
        room = self.tree.owner(node) if not parts[0].startswith("self.") else self.tree.module
        return any(self.names.key(each.target) in keys for each in self.tree.within(room, cst.AssignTarget))
