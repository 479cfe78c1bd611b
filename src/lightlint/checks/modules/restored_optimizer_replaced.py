from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import OptimizerMade, StateLoaded, Stepped
from lightlint.explore.queries import in_sight
from lightlint.facts.classes import OPTIMIZER
from lightlint.values.training import Optimizer

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

Owner = cst.FunctionDef | cst.Module
Place = cst.Name | cst.Attribute


class RestoredOptimizerReplaced(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "load_state_dict":
            return
        key = self.names.key(func.value)
        if not key or key.count(".") > key.startswith("self.") or not self.values.is_optimizer(func.value):
            return
        made = next(self._replaced_here(call, key), None) or next(self._replaced_later(call, key), None)
        if made is not None:
            line = self.facts.source.locate(self.facts.span(call)[0]).row
            self.report(made, f"`{key}` is made anew: the state that line {line} loads into it is never used")

    def _replaced_here(self, load: cst.Call, key: str) -> Iterator[cst.Call]:
        """The making of another optimizer behind a load, in its function, before anything is asked of the first."""
        owner = self.tree.owner(load)
        flow, made = self.facts.flow(owner), self._makes(owner, key)
        behind = [each for each in made if flow.reaches(load, [each]) and not flow.reaches(each, [load])]
        uses = [each for each in self._uses(owner, key) if not self.tree.contains(load, each)]
        kept = [each for each in uses if flow.reaches(each, [load])]
        if behind and not kept and not flow.reaches(load, [*uses, flow.end], avoiding=behind):
            loads = [each for each in uses if self._is_load(each)]
            yield from (each for each in behind if flow.reaches(each, uses) and not flow.reaches(each, loads))

    def _replaced_later(self, load: cst.Call, key: str) -> Iterator[cst.Call]:
        """The same for what `__init__` loads, in the method that trains."""
        node = self.tree.enclosing_class(load)
        init = self.classes.methods(node).get("__init__") if node is not None else None
        loader = self.tree.function(load)
        if node is None or init is None or not key.startswith("self.") or loader is None:
            return
        begun = self.hooks.reachable(init)
        if loader not in begun or node.bases or self.hooks.subclasses.get(node):
            return
        methods = list(self.classes.methods(node).values())
        steps = [each for each in methods if each not in begun and self._steps(each, key)]
        for method in (each for each in methods if each not in begun):
            inside = self.hooks.reachable(method)
            ours = [each for each in steps if each is method or (each in inside and each.name.value.startswith("_"))]
            if steps and ours == steps and loader not in inside:
                yield from self._at_start(method, key)

    def _at_start(self, method: cst.FunctionDef, key: str) -> Iterator[cst.Call]:
        """The making of an optimizer that a method surely begins with; nothing loads into it later."""
        inside = self.hooks.reachable(method)
        if any(self._is_load(each) for function in inside for each in self._uses(function, key)):
            return
        flow = self.facts.flow(method)
        for made in self._makes(method, key):
            used = flow.reaches(flow.start, self._uses(method, key), avoiding=[made])
            if not used and not self.facts.conditions(made) and not self.tree.loops(made):
                yield made

    def _makes(self, owner: Owner, key: str) -> list[cst.Call]:
        """The calls of a function after which a name surely is a new optimizer, by themselves or in a helper."""
        found = []
        for call in self.tree.own(owner, cst.Call):
            assign = self.tree.parent(call)
            if isinstance(assign, cst.Assign) and self._is_set(assign, key):
                if self._is_optimizer(call):
                    found.append(call)
                continue
            callee = self.hooks.callee(call) if key.startswith("self.") else None
            if callee is None or callee is owner or callee.decorators or not self._is_own_method(call):
                continue
            made = [each for each in self._assigns(callee, key) if not self.facts.conditions(each)]
            if made and not any(self._is_load(each) for each in self._uses(callee, key)):
                found.append(call)
        return found

    def _assigns(self, owner: cst.FunctionDef, key: str) -> list[cst.Call]:
        return [
            each.value
            for each in self.tree.own(owner.body, cst.Assign)
            if isinstance(each.value, cst.Call) and self._is_set(each, key) and self._is_optimizer(each.value)
        ]

    def _is_optimizer(self, call: cst.Call) -> bool:
        name = self.names.call(call) or ""
        return name.startswith("torch.optim.") and self.classes.name_is_a(name, OPTIMIZER)

    def _is_set(self, assign: cst.Assign, key: str) -> bool:
        return len(assign.targets) == 1 and self.names.key(assign.targets[0].target) == key

    def _is_own_method(self, call: cst.Call) -> bool:
        return isinstance(call.func, cst.Attribute) and self.classes.is_self(call.func.value)

    def _uses(self, owner: Owner, key: str) -> list[cst.CSTNode]:
        """Where a function reads a name, or calls what does, other than to set it."""
        found: list[cst.CSTNode] = []
        body = owner.body if isinstance(owner, cst.FunctionDef) else owner
        places: Iterable[Place] = self.tree.within(body, cst.Name, cst.Attribute)
        for place in places:
            if self.names.key(place) == key and not isinstance(self.tree.parent(place), cst.AssignTarget):
                found.append(place)
        made = self._makes(owner, key) if key.startswith("self.") and isinstance(owner, cst.FunctionDef) else []
        for call in self.tree.own(body, cst.Call) if key.startswith("self.") else ():
            callee = self.hooks.callee(call)
            if callee is not None and callee is not owner and call not in made:
                inside = self.hooks.reachable(callee)
                if any(self.names.key(each) == key for one in inside for each in self.tree.own(one, cst.Attribute)):
                    found.append(call)
        return found

    def _is_load(self, use: cst.CSTNode) -> bool:
        above = self.tree.parent(use)
        return isinstance(above, cst.Attribute) and above.attr.value == "load_state_dict"

    def _steps(self, function: cst.FunctionDef, key: str) -> bool:
        above = [self.tree.parent(each) for each in self._uses(function, key) if isinstance(each, cst.Attribute)]
        return any(isinstance(each, cst.Attribute) and each.attr.value == "step" for each in above)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Optimizers made anew over parameters whose optimizer has just got its state back and takes no step any more."""
        for path in entry.paths:
            stepped = path.of(Stepped)
            loaded = [event for event in path.of(StateLoaded) if isinstance(event.object, Optimizer)]
            for made in path.of(OptimizerMade):
                for load in loaded:
                    old, new = load.object, made.optimizer
                    if not isinstance(old, Optimizer) or not in_sight([old, new]) or not load.time < made.time:
                        continue
                    tested = {each.site for each in load.where.conditions}
                    together = entry.name == "main" or load.where.calls[:1] == made.where.calls[:1]
                    if not together or any(each.site not in tested for each in made.where.conditions):
                        continue
                    same = set(old.parameters) & set(new.parameters)
                    again = any(each.object is new for each in loaded)
                    lost = same and not again and not any(s.optimizer is old and s.time > load.time for s in stepped)
                    if lost and any(s.optimizer is new for s in stepped):
                        row = load.site[1]
                        message = f"the optimizer is made anew: the state that line {row} loads into it is never used"
                        yield Fault.at(made, message)
