from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.splits import SPLIT, Splits


class SubsetsShareTransform(Check):
    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        target = node.target
        subset = self._subset(target)
        if subset is None:
            return
        name, others = self.code.text_of(subset), self._others(subset)
        if others and not self._is_replaced(node, [name, *others]) and not self._is_for_all(node, name, others):
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
                return Splits(self.facts).beside_name(subset)
            case cst.Attribute():
                return Splits(self.facts).beside_attribute(subset)
            case cst.Subscript():
                return self._beside_item(subset)
        return []

    def _beside_item(self, subset: cst.Subscript) -> list[str]:
        """`parts[1]` beside `parts[0]`, where `parts` is a split that is used by its items."""
        parts = subset.value
        found = self.names.bindings.lookup(parts) if isinstance(parts, cst.Name) else []
        if len(found) != 1 or found[0].path or self.names.call(found[0].value) != SPLIT:
            return []
        key = self.names.key(subset)
        used = [self.names.key(each) for each in self.tree.within(self.tree.owner(subset), cst.Subscript)]
        return sorted({each for each in used if each.startswith(f"{self.names.key(parts)}[") and each != key})

    def _is_replaced(self, node: cst.AssignTarget, parts: list[str]) -> bool:
        """Whether one of the parts is given a data set of its own."""
        keys = {f"{each}.dataset" for each in parts}
        room = self.tree.owner(node) if not parts[0].startswith("self.") else self.tree.module
        return any(self.names.key(each.target) in keys for each in self.tree.within(room, cst.AssignTarget))

    def _is_for_all(self, node: cst.AssignTarget, part: str, others: list[str]) -> bool:
        """Whether the other parts are given the same name's value at the same place."""
        assign, place = self.tree.parent(node), self.names.key(node.target).removeprefix(part)
        wanted = self.names.key(assign.value) if isinstance(assign, cst.Assign) else ""
        assigns = self.tree.within(self.tree.owner(node), cst.Assign)
        given = {
            self.names.key(target.target)
            for each in assigns
            for target in each.targets
            if self.names.key(each.value) == wanted
        }
        return bool(wanted and place) and all(f"{each}{place}" in given for each in others)
