from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check
from lightlint.engine.events import Configured, OptimizerMade, Stepped
from lightlint.facts.objects.classes import OPTIMIZER
from lightlint.values.core import Class, Function
from lightlint.values.training import Optimizer

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site
from lightlint.values.core import is_constant


class ConfigureOptimizersNoReturn(Check):
    def stands(self) -> bool:
        return not self.facts.configured.is_free

    def visit_Module(self, module: cst.Module) -> None:
        for node, method in self.facts.configured.methods:
            if self.facts.training.automatic(node) is True and not self.tree.own(method, cst.Yield):
                self._look_at(node, method)

    def _look_at(self, node: cst.ClassDef, method: cst.FunctionDef) -> None:
        flow = self.facts.flow(method)
        returns = self.tree.own(method, cst.Return)
        made = [call for call in self.tree.own(method, cst.Call) if self._is_optimizer(call)]
        lost = [
            call
            for call in made
            if flow.reaches(call, [flow.end], avoiding=returns) and self._may_be_lost(method, call)
        ]
        if lost and not any(self._is_stepped(node, call) for call in lost):
            self.report(
                method.name,
                "`configure_optimizers` makes an optimizer and can end without returning it: nothing is trained",
            )

    def _may_be_lost(self, method: cst.FunctionDef, call: cst.Call) -> bool:
        """Whether a rehearsal makes an optimizer and returns nothing; where none comes there, no test may ask for it."""
        paths = [path for _, path, _ in self.happened(call, OptimizerMade)]
        returned = [event.returned for path in paths for event in path.of(Configured)]
        if returned:
            return any(is_constant(each, None) for each in returned)
        assign = self.tree.parent(call)
        target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
        tests = [each.test for each in self.tree.own(method, cst.If)]
        asked = {name.value for test in tests for name in self.tree.within(test, cst.Name)}
        return not (isinstance(target, cst.Name) and target.value in asked)

    def _is_optimizer(self, call: cst.Call) -> bool:
        return self.classes.name_is_a(self.names.of(call.func), OPTIMIZER)

    def _is_stepped(self, node: cst.ClassDef, call: cst.Call) -> bool:
        """Whether an optimizer is kept in an attribute: the class may step it by itself."""
        assign = self.tree.parent(call)
        targets = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else []
        kept = {each.attr.value for each in targets if isinstance(each, cst.Attribute)}
        uses = [each for each in self.tree.within(node, cst.Attribute) if each.attr.value in kept]
        return len(uses) > len(targets)

    def clears(self, entry: Entry) -> Iterator[Site]:
        """Methods of modules that keep their optimizers and step them by themselves."""
        for path in entry.paths:
            stepped = [event.optimizer for event in path.of(Stepped)]
            for event in path.of(Configured):
                configure = (
                    event.module.cls.find("configure_optimizers") if isinstance(event.module.cls, Class) else None
                )
                kept = [each for each in event.module.attributes.values() if isinstance(each, Optimizer)]
                if isinstance(configure, Function) and any(each in stepped for each in kept):
                    yield configure.name_site()
