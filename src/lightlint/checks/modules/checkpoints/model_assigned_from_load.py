from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import LoadResultUsed
from lightlint.fixes.edits import replace_statement

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_OF_MODELS = {
    "eval", "train", "to", "cuda", "cpu", "half", "float", "forward", "parameters", "named_parameters", "modules",
    "state_dict", "load_state_dict", "zero_grad", "requires_grad_", "step",
}  # fmt: skip
_RETURNED = "what `load_state_dict` returns, which is not the object it loads into"


class ModelAssignedFromLoad(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """What `load_state_dict` returns, used as the model."""
        for event in entry.of(LoadResultUsed):
            named = event.asked == "=" and not self._is_left(event)
            if named or event.asked in _OF_MODELS or event.asked == "()":
                yield Fault.of(event.load, f"this becomes {_RETURNED}")

    def _is_left(self, event: LoadResultUsed) -> bool:
        """Whether the name that gets it is one of a function which does not come to it again."""
        word = self.node_of(event.where.site)
        function = self.tree.function(word) if isinstance(word, cst.Name) else None
        if not isinstance(word, cst.Name) or function is None:
            return False
        bound = self.names.bindings.lookup(word)
        kept = next((each for each in bound if each.site is word and each.scope is function), None)
        given = {id(name) for each in bound for name in self.tree.within(each.site, cst.Name)}
        words = (each for each in self.tree.within(function, cst.Name) if each.value == word.value)
        read = (each for each in words if id(each) not in given)
        return kept is not None and not any(kept in self.facts.reaching.bindings(each) for each in read)

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        above = self.tree.parent(node)
        func = node.func if isinstance(node, cst.Call) else None
        if not isinstance(above, cst.Assign) or len(above.targets) != 1 or not isinstance(func, cst.Attribute):
            return None
        key = self.names.key(func.value)
        if not key or self.names.key(above.targets[0].target) != key:
            return None
        return Repair("drop the assignment", replace_statement(self.code, above, self.code.text_of(node)))
