from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import Binding, Kind

_SPLIT = "torch.utils.data.random_split"


class SubsetsShareTransform(Check):
    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        target = node.target
        match target:
            case cst.Attribute(value=cst.Attribute(value=cst.Name() as subset, attr=cst.Name(value="dataset"))):
                parts = self._parts(subset)
            case _:
                return
        others = [each for each in parts if each != subset.value]
        if others and not self._is_replaced(parts):
            shared = ", ".join(f"`{each}`" for each in others)
            self.report(target, f"`{subset.value}.dataset` is the data set of {shared} too: this changes both")

    def _parts(self, subset: cst.Name) -> list[str]:
        """The names that one `random_split` gives, among them this one."""
        found = self.names.bindings.lookup(subset)
        only = found[0] if len(found) == 1 else None
        if only is None or only.kind is not Kind.ASSIGN or not only.path or self.names.call(only.value) != _SPLIT:
            return []
        scope: dict[str, list[Binding]] = self.names.bindings.by_scope.get(only.scope, {})
        return [name for name, bindings in scope.items() if any(each.value is only.value for each in bindings)]

    def _is_replaced(self, parts: list[str]) -> bool:
        """Whether one of the parts is given a data set of its own."""
        keys = {f"{each}.dataset" for each in parts}
        return any(self.names.key(each.target) in keys for each in self.tree.all(cst.AssignTarget))
