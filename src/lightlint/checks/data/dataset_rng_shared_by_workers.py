from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.classes import DATASET
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
        name = self.names.call(call)
        if name not in _GENERATORS or self._seeds_workers() or not self._is_shared(call):
            return
        counts = [self.facts.datasets.workers(each) for each in self.facts.datasets.loaders]
        if counts and all(count == 0 for count in counts):
            return
        several = any(isinstance(count, int) and count > 0 for count in counts)
        self.report(
            call,
            f"every worker gets a copy of this `{_GENERATORS[name]}` in the same state: all draw the same numbers",
            tier=None if several else Tier.NOTE,
        )

    def _is_shared(self, call: cst.Call) -> bool:
        """Whether a data set's samples are drawn with a generator that was made before the workers start."""
        node, function = self.tree.enclosing_class(call), self.tree.function(call)
        if node is None:
            return function is None and self._is_drawn_by_name(call)
        start = self.classes.method(node, "__init__")
        if function is not None and (start is None or function not in self.hooks.reachable(start)):
            return False
        reads = self._samples(node) if self.classes.is_a(node, DATASET) else self._called_in_samples(node)
        return any(self._is_drawn(node, attribute, reads) for attribute in self._attributes(call))

    def _samples(self, node: cst.ClassDef) -> frozenset[cst.FunctionDef]:
        """What makes the samples of a data set with an index."""
        starts = [method for name in _READS if (method := self.classes.method(node, name)) is not None]
        return frozenset(function for start in starts for function in self.hooks.reachable(start))

    def _called_in_samples(self, node: cst.ClassDef) -> frozenset[cst.FunctionDef]:
        """What runs for each sample of a transform's class: its `__call__`, where a data set of the file keeps an instance."""
        method = self.classes.method(node, "__call__")
        if method is None:
            return frozenset()
        for dataset in self.tree.all(cst.ClassDef):
            reads = self._samples(dataset) if self.classes.is_a(dataset, DATASET) else ()
            held = [
                each
                for function in reads
                for each in self.tree.within(function, cst.Attribute)
                if self.classes.self_class(each.value) is dataset
            ]
            origins = {origin.name for each in held for origin in self.values.origins(each)}
            if self.names.defined(node) in origins:
                return frozenset(self.hooks.reachable(method))
        return frozenset()

    def _is_drawn_by_name(self, call: cst.Call) -> bool:
        """Whether a generator of the module's is used under its name where samples are made."""
        above = self.tree.parent(call)
        name = self.names.key(above.targets[0].target) if isinstance(above, cst.Assign) else ""
        if not name or "." in name or len(self.names.bindings.lookup_in(name, self.tree.module)) != 1:
            return False
        reads = {
            function
            for node in self.tree.all(cst.ClassDef)
            if self.classes.is_a(node, DATASET)
            for function in self._samples(node)
        }
        uses = [each for function in reads for each in self.tree.within(function.body, cst.Name) if each.value == name]
        return any(binding.scope is self.tree.module for each in uses for binding in self.names.bindings.lookup(each))

    def _seeds_workers(self) -> bool:
        """Whether code of the file that may run in a worker could give it a state of its own."""
        named = [each for each in self.tree.all(cst.Name) if each.value in _SEEDING and not self._is_imported(each)]
        return any(not self._is_idle(each) for each in named)

    def _is_imported(self, name: cst.Name) -> bool:
        return any(isinstance(each, (cst.Import, cst.ImportFrom)) for each in self.tree.ancestors(name))

    def _is_idle(self, node: cst.CSTNode) -> bool:
        """Whether a node stands in a function of the module that nothing names, in a file that makes loaders itself."""
        above = [each for each in self.tree.ancestors(node) if isinstance(each, (cst.FunctionDef, cst.ClassDef))]
        function = above[-1] if above else None
        if not isinstance(function, cst.FunctionDef) or function.decorators or not self.facts.datasets.loaders:
            return False
        word = function.name.value
        named = [
            each for each in self.tree.all(cst.Name) if each.value == word and not self.tree.contains(function, each)
        ]
        spelled = (self.names.constant(each) for each in self.tree.all(cst.SimpleString))
        return not named and word not in spelled

    def _attributes(self, call: cst.Call) -> list[str]:
        """The attributes of `self` that hold the generator, itself or in what was made of it."""
        function = self.tree.function(call)
        above = self.tree.parent(call)
        while isinstance(above, (cst.BooleanOperation, cst.IfExp)):
            above = self.tree.parent(above)
        names: set[str] = set()
        if isinstance(above, cst.Assign) and len(above.targets) == 1:
            names.add(self.names.key(above.targets[0].target))
        elif isinstance(above, cst.AnnAssign):
            names.add(self.names.key(above.target))
        if function is None:
            return sorted(each for each in names if each and "." not in each)
        found = {name.removeprefix("self.") for name in names if name.startswith("self.")}
        for assign in self.tree.own(function, cst.Assign):
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

    def _is_drawn(self, node: cst.ClassDef, attribute: str, reads: frozenset[cst.FunctionDef]) -> bool:
        """Whether the attribute is used where samples are made, and not replaced there or elsewhere."""
        if len(self.classes.attribute_sources(node, attribute)) != 1:
            return False
        return any(
            each.attr.value == attribute and self.classes.is_self(each.value) and self.tree.function(each) in reads
            for each in self.tree.within(node, cst.Attribute)
        )
