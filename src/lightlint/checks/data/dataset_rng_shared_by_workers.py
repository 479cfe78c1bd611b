from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import LoaderWorked, RandomDrawn
from lightlint.facts.classes import DATASET
from lightlint.facts.worker_seeds import may_seed
from lightlint.finding import Tier
from lightlint.values.core import Library, number_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_GENERATORS = {
    "numpy.random.default_rng": "default_rng",
    "numpy.random.RandomState": "RandomState",
    "random.Random": "Random",
    "torch.Generator": "Generator",
}
_SEEDS = {"seed", "manual_seed", "set_state", "setstate"}  # a generator that is set for each sample goes by the index


class DatasetRngSharedByWorkers(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.call(call)
        if name not in _GENERATORS or may_seed(self.facts) or not self._is_shared(call):
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
        if function is not None and not self._is_made_with(node, function) and not self._is_called_first(function):
            return False
        attributes = self._attributes(call)
        kinds = [node, *self.hooks.subclasses.get(node, ())]
        return any(self._is_drawn(each, attribute, call) for each in kinds for attribute in attributes)

    def _is_made_with(self, node: cst.ClassDef, function: cst.FunctionDef) -> bool:
        start = self.classes.method(node, "__init__")
        return start is not None and function in self.hooks.reachable(start)

    def _is_called_first(self, method: cst.FunctionDef) -> bool:
        """Whether functions of the module call a method, and no class but in the method that hands the call on does."""
        name = method.name.value
        calls = [each for each in self.tree.all(cst.Call) if self.names.method(each) == name]
        around = [self.tree.function(each) for each in calls]
        outer = [each for each in around if each is None or each.name.value != name]
        return bool(outer) and all(each is None or self.tree.enclosing_class(each) is None for each in outer)

    def _run_in_samples(self, node: cst.ClassDef) -> frozenset[cst.FunctionDef]:
        """What a class runs for each sample: that of a data set, or the `__call__` of a transform that one keeps."""
        if self.classes.is_a(node, DATASET):
            return self.facts.datasets.sampled_in(node)
        method = self.classes.method(node, "__call__")
        called = method is not None and self.names.defined(node) in self.facts.datasets.called_classes
        return frozenset(self.hooks.reachable(method)) if method is not None and called else frozenset()

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
            for function in self.facts.datasets.sampled_in(node)
        }
        uses = [each for function in reads for each in self.tree.within(function.body, cst.Name) if each.value == name]
        return any(binding.scope is self.tree.module for each in uses for binding in self.names.bindings.lookup(each))

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

    def _is_drawn(self, node: cst.ClassDef, attribute: str, call: cst.Call) -> bool:
        """Whether samples are made with what the call gives an attribute, which other generators only come before."""
        sources = [
            value for each in self.classes.line(node) for value, _ in self.classes.attribute_sources(each, attribute)
        ]
        later = [each for each in sources if each is not None and self._is_set_later(each)]
        if len(sources) != 1 and (later != [call] or any(self.names.call(each) not in _GENERATORS for each in sources)):
            return False
        reads = self._run_in_samples(node)
        words = [each for function in reads for each in self.tree.within(function, cst.Attribute)]
        uses = [each for each in words if each.attr.value == attribute and self.classes.is_self(each.value)]
        parts = [each.attr.value for each in map(self.tree.parent, uses) if isinstance(each, cst.Attribute)]
        return bool(uses) and _SEEDS.isdisjoint(parts)

    def _is_set_later(self, value: cst.BaseExpression) -> bool:
        """Whether a method sets a value when the object is made already."""
        function, node = self.tree.function(value), self.tree.enclosing_class(value)
        return function is not None and node is not None and not self._is_made_with(node, function)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Generators that a worker draws from as they were before it started."""
        for event in entry.of(LoaderWorked):
            sure = bool(number_of(event.loader.arguments.get("num_workers")))
            for drawn in event.events:
                made = drawn.generator if isinstance(drawn, RandomDrawn) else None
                if made is not None and made.site is not None and made.made < event.time and not made.escaped:
                    name = _GENERATORS[made.cls.path] if isinstance(made.cls, Library) else made.name
                    message = f"every worker gets a copy of this `{name}` in the same state: all draw the same numbers"
                    yield Fault(made.site, message, None if sure else Tier.NOTE, (drawn.site,))
