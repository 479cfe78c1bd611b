from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured
from lightlint.explore.queries import configured_at
from lightlint.facts.classes import MODULE
from lightlint.facts.configured import CONFIGURE, Part, Returned
from lightlint.values.core import Class, Function

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site


class MultipleOptimizersAutomatic(Check):
    def stands(self) -> bool:
        return not self.facts.configured.is_free

    def visit_Module(self, module: cst.Module) -> None:
        if self.facts.lightning.may_be_below("2.0"):
            return
        seen: set[cst.CSTNode] = set()
        for node, method in self.facts.configured.methods:
            step = self.classes.method(node, "training_step")
            if self.facts.training.automatic(node) is not True or not self.classes.has_method(node, "training_step"):
                continue
            if step is not None and "optimizer_idx" in {each.name.value for each in step.params.params}:
                continue  # a step of Lightning 1, which is another rule's
            for returned in self.facts.configured.of(method):
                if self._are_several(returned) and returned.statement not in seen:
                    seen.add(returned.statement)
                    count = len(returned.optimizers or ())
                    self.report(returned.statement, f"{count} optimizers in automatic optimization: Lightning 2 raises")

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        """Report a class with a step of its own that gets several optimizers from a class of another file."""
        if self.facts.lightning.may_be_below("2.0") or not self.classes.is_a(node, MODULE):
            return
        step = self.classes.method(node, "training_step")
        if step is None or self.facts.training.automatic(node) is not True:
            return
        if self.classes.method(node, CONFIGURE.name) is not None or not self.classes.complete(node):
            return
        if "optimizer_idx" in {each.name.value for each in step.params.params}:
            return
        found = self._inherited(node)
        if found is not None:
            count = min(len(each.optimizers or ()) for each in found[1])
            self.report(
                node.name, f"{count} optimizers from `{found[0]}` in automatic optimization: Lightning 2 raises"
            )

    def _inherited(self, node: cst.ClassDef) -> tuple[str, tuple[Returned, ...]] | None:
        """The several optimizers that a class above, in another file, returns from `configure_optimizers`, with its name."""
        if not self.classes.has_method(node, CONFIGURE.name):
            return None
        for name in self.classes.ancestors(node):
            found = self.facts.of_class(name) if self.classes.local(name) is None else None
            method = found[0].classes.methods(found[1]).get(CONFIGURE.name) if found is not None else None
            if found is not None and method is not None:
                returned = found[0].configured.of(method)
                several = bool(returned) and all(map(self._are_several, returned))
                return (found[1].name.value, returned) if several and not found[0].configured.is_free else None
        return None

    def _are_several(self, returned: Returned) -> bool:
        """Whether this is two optimizers or more, in a shape that Lightning takes."""
        if len(returned.optimizers or ()) < 2:
            return False
        of_one_kind = returned.parts and set(returned.parts) in ({Part.OPTIMIZER}, {Part.DICT})
        return bool(of_one_kind) or (len(returned.parts) == 2 and returned.parts[0] is Part.LIST)

    def clears(self, entry: Entry) -> Iterator[Site]:
        return iter(()) if any(self.rehearse(entry)) else configured_at(entry)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        if self.facts.lightning.may_be_below("2.0"):
            return
        for event in entry.of(Configured):
            several = event.automatic and len(event.optimizers) > 1
            step = event.module.cls.find("training_step") if isinstance(event.module.cls, Class) else None
            old = isinstance(step, Function) and "optimizer_idx" in {each.arg for each in step.node.args.args}
            if several and event.returned_at and isinstance(step, Function) and not old:
                message = f"{len(event.optimizers)} optimizers in automatic optimization: Lightning 2 raises"
                yield Fault(event.returned_at, message)
