from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import LoadResultUsed
from lightlint.facts.bindings import Kind
from lightlint.fixes.edits import replace_statement

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_OF_MODELS = {
    "eval", "train", "to", "cuda", "cpu", "half", "float", "forward", "parameters", "named_parameters", "modules",
    "state_dict", "load_state_dict", "zero_grad", "requires_grad_", "step",
}  # fmt: skip
_RETURNED = "what `load_state_dict` returns, which is not the object it loads into"


class ModelAssignedFromLoad(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func, above = call.func, self.tree.parent(call)
        if not isinstance(func, cst.Attribute) or func.attr.value != "load_state_dict" or self._may_be_other(func):
            return
        if isinstance(above, cst.Attribute) and above.attr.value in _OF_MODELS:
            self.report(above, f"`.{above.attr.value}` is asked of {_RETURNED}")
        elif isinstance(above, cst.Assign) and len(above.targets) == 1:
            key = self.names.key(above.targets[0].target)
            if key and key == self.names.key(func.value):
                repair = Repair("drop the assignment", replace_statement(self.code, above, self.code.text_of(call)))
                self.report(above, f"`{key}` becomes {_RETURNED}", repair=repair)
            elif key and self._is_used(above, key):
                self.report(above, f"`{key}` is used as a model and is {_RETURNED}")

    def _may_be_other(self, func: cst.Attribute) -> bool:
        """Whether the method may be no torch's: the file, or a class the object may be of, defines one of that name."""
        known = [self.classes.local(each.name) for each in self.values.origins(func.value)]
        if known and all(node is not None for node in known):
            return any(node is not None and self.classes.has_method(node, func.attr.value) for node in known)
        defined = any(each.name.value == func.attr.value for each in self.tree.all(cst.FunctionDef))
        return defined or self._is_library(func.value)

    def _is_library(self, receiver: cst.BaseExpression) -> bool:
        """Whether a receiver is a module of Python or a class, and no instance."""
        return isinstance(receiver, (cst.Name, cst.Attribute)) and self.names.of(receiver) is not None

    def _is_used(self, assign: cst.Assign, key: str) -> bool:
        """Whether the result is called, or has asked of it what only a model has."""
        target = assign.targets[0].target
        if isinstance(target, cst.Name):
            found = self.names.bindings.lookup(target)
            if len(found) != 1 or found[0].kind is not Kind.ASSIGN:
                return False
        uses = self.tree.within(self.tree.owner(assign), cst.Call, cst.Attribute)
        bases = [(use, use.func if isinstance(use, cst.Call) else use.value) for use in uses]
        return any(
            self.names.key(base) == key and (isinstance(use, cst.Call) or use.attr.value in _OF_MODELS)
            for use, base in bases
        )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """What `load_state_dict` returns, used as the model."""
        for event in entry.of(LoadResultUsed):
            if event.asked in _OF_MODELS or event.asked in ("()", "="):
                yield Fault.of(event.load, f"this becomes {_RETURNED}")
