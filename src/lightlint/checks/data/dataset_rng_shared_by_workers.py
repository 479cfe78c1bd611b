from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.classes import DATASET
from lightlint.facts.workers import LOADER
from lightlint.finding import Tier

_GENERATORS = {
    "numpy.random.default_rng": "default_rng",
    "numpy.random.RandomState": "RandomState",
    "random.Random": "Random",
    "torch.Generator": "Generator",
}
_SEEDING = {"get_worker_info", "worker_init_fn"}
_READS = ("__getitem__", "__getitems__")  # in `__iter__` one order for all workers may be meant


class DatasetRngSharedByWorkers(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name, node = self.names.call(call), self.tree.enclosing_class(call)
        function = self.tree.function(call)
        if name not in _GENERATORS or node is None or function is None or function.name.value != "__init__":
            return
        if not self.classes.is_a(node, DATASET) or self._seeds_workers():
            return
        if not any(self._is_drawn(node, attribute) for attribute in self._attributes(call)):
            return
        counts = [self.facts.workers.count(each) for each in self.tree.all(cst.Call) if self.names.call(each) == LOADER]
        if counts and all(count == 0 for count in counts):
            return
        several = any(isinstance(count, int) and count > 0 for count in counts)
        self.report(
            call,
            f"every worker gets a copy of this `{_GENERATORS[name]}` in the same state: all draw the same numbers",
            tier=None if several else Tier.NOTE,
        )

    def _seeds_workers(self) -> bool:
        return any(name.value in _SEEDING for name in self.tree.all(cst.Name))

    def _attributes(self, call: cst.Call) -> list[str]:
        """The attributes of `self` that hold the generator, itself or in what was made of it."""
        function = self.tree.function(call)
        above = self.tree.parent(call)
        names: set[str] = set()
        if isinstance(above, cst.Assign) and len(above.targets) == 1:
            names.add(self.names.key(above.targets[0].target))
        found = {name.removeprefix("self.") for name in names if name.startswith("self.")}
        for assign in self.tree.own(function, cst.Assign) if function is not None else []:
            key = self.names.key(assign.targets[0].target)
            held = any(
                arg.value is call or self.names.key(arg.value) in names - {""}
                for arg in self.tree.within(assign.value, cst.Arg)
            )
            if key.startswith("self.") and held and not self._draws(assign.value, names):
                found.add(key.removeprefix("self."))
        return sorted(each for each in found if "." not in each)

    def _draws(self, value: cst.BaseExpression, names: set[str]) -> bool:
        """Whether a value is made of what the generator draws at once, and not of the generator."""
        methods = [c.func for c in self.tree.within(value, cst.Call) if isinstance(c.func, cst.Attribute)]
        if any(self.names.key(each.value) in names for each in methods):
            return True
        called = [self.names.call(each) or "" for each in self.tree.within(value, cst.Call)]
        return any(each.startswith(("torch.", "numpy.", "sklearn.")) and each not in _GENERATORS for each in called)

    def _is_drawn(self, node: cst.ClassDef, attribute: str) -> bool:
        """Whether the attribute is used where samples are made, and not replaced there or elsewhere."""
        if len(self.classes.attribute_sources(node, attribute)) != 1:
            return False
        starts = [method for each in _READS if (method := self.classes.methods(node).get(each)) is not None]
        reached = {function for start in starts for function in self.hooks.reachable(start)}
        return any(
            each.attr.value == attribute and self.classes.is_self(each.value) and self.tree.function(each) in reached
            for each in self.tree.within(node, cst.Attribute)
        )
