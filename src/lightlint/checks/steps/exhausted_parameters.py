from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import UsedUp
from lightlint.facts.bindings import Kind, unpacked
from lightlint.fixes.edits import wrap

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_LAZY = {"builtins.filter", "builtins.map", "builtins.zip", "itertools.chain", "itertools.chain.from_iterable"}
_EATERS = {f"builtins.{name}" for name in ("dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple")}
_ITERATORS = {"parameters", "named_parameters", "buffers"}


class ExhaustedParameters(Check):
    def visit_Assign(self, node: cst.Assign) -> None:
        name = node.targets[0].target if len(node.targets) == 1 else None
        if name is None or not self._is_generator(node.value):
            return
        if isinstance(name, cst.Attribute) and self.classes.is_self(name.value):
            self._judge_attribute(node, name)
        if isinstance(name, cst.Name):
            self._judge_name(node, name)

    def _judge_attribute(self, node: cst.Assign, name: cst.Attribute) -> None:
        """An attribute that is used up where it is set, and used again in another method."""
        owner, around, key = self.tree.function(node), self.tree.enclosing_class(node), self.names.key(name)
        if around is None or owner is None or len(self.classes.attribute_values(around, name.attr.value)) != 1:
            return
        spelled = [each for each in self.tree.within(around, cst.Attribute) if self.names.key(each) == key]
        uses = [each for each in spelled if each is not name and self._eats(each)]
        here = [each for each in uses if self.tree.function(each) is owner]
        later = [each for each in uses if each not in here and self.tree.function(each) is not None]
        flow = self.facts.flow(owner)
        if later and any(flow.reaches(node.value, [each]) for each in here):
            self._report(later[0], key, "used up before", node)

    def _judge_name(self, node: cst.Assign, name: cst.Name) -> None:
        owner = self.tree.owner(name)
        bound = self.names.bindings.lookup(name)
        if len(bound) != 1 or bound[0].kind is not Kind.ASSIGN or self._leaks(name, owner):
            return
        uses = [use for use in self._uses(name, owner) if self._eats(use)]
        flow = self.facts.flow(owner)
        for use in uses:
            again = [other for other in uses if other is not use and flow.reaches(other, [use], avoiding=[name])]
            loops = [loop for loop in self.tree.loops(use) if not self.tree.contains(loop, node)]
            repeated = any(flow.reaches_in_later_iteration(loop, use, [use], avoiding=[name]) for loop in loops)
            if again or repeated:
                how = "used up before" if again else "used up in the first iteration"
                self._report(use, name.value, how, node)
                return
        if uses and isinstance(owner, cst.FunctionDef):
            self._judge_returned(node, name, uses, owner)

    def _judge_returned(
        self, node: cst.Assign, name: cst.Name, uses: list[cst.Name], function: cst.FunctionDef
    ) -> None:
        """A generator that a function uses up, gives back empty, and that one of its callers uses again."""
        returns = self.values.returns(function)
        place = _place(returns[0], name.value) if len(returns) == 1 else None
        flow = self.facts.flow(function)
        if place is None or function.decorators or flow.reaches(name, [flow.end], avoiding=uses):
            return  # no return, or a way to it that leaves the generator as it was
        for call in self.hooks.calls_of.get(function, ()):
            for held in self._held(call, place):
                self._report(held, self.names.key(held), "used up before", node)
                return

    def _held(self, call: cst.Call, place: tuple[int, ...]) -> list[cst.BaseExpression]:
        """The uses, behind a call, of the part of its result at a place that take everything out of it."""
        assign, owner = self.tree.statement(call), self.tree.owner(call)
        if not isinstance(assign, cst.Assign) or assign.value is not call or len(assign.targets) != 1:
            return []
        parts = unpacked(assign.targets[0].target, call)
        target = next((leaf for leaf, _, path in parts if path == place), None)
        if isinstance(target, cst.Name) and len(self.names.bindings.lookup(target)) == 1:
            found = [each for each in self._uses(target, owner) if self._eats(each)]
            return [each for each in found if self.facts.flow(owner).reaches(call, [each])]
        node = self.tree.enclosing_class(call)
        if isinstance(target, cst.Attribute) and node is not None and self.classes.is_self(target.value):
            spelled = [each for each in self.tree.within(node, cst.Attribute) if each.attr.value == target.attr.value]
            once = len(self.classes.attribute_sources(node, target.attr.value)) == 1
            return [each for each in spelled if once and self.classes.is_self(each.value) and self._eats(each)]
        return []

    def _report(self, use: cst.BaseExpression, name: str, how: str, node: cst.Assign) -> None:
        self.report(
            use,
            f"`{name}` is a generator and {how}: nothing is left in it here",
            repair=Repair("make it a list", wrap(self.code, node.value, "list(", ")")),
        )

    def _is_generator(self, value: cst.BaseExpression) -> bool:
        """Whether a value is a generator over parameters: `net.parameters()`, or `filter`, `map` and the like of one."""
        if isinstance(value, cst.Call):
            func = value.func
            method = isinstance(func, cst.Attribute) and func.attr.value in _ITERATORS and not self.hooks.callee(value)
            if method and isinstance(func, cst.Attribute):
                return self._is_module(func.value)
            lazy = self.names.of(func) in _LAZY
            return lazy and any(self._is_generator(arg.value) for arg in value.args)
        return isinstance(value, cst.GeneratorExp) and self._is_generator(value.for_in.iter)

    def _is_module(self, receiver: cst.BaseExpression) -> bool:
        """Not what another class of this file defines `parameters` for, and in a file that builds torch modules."""
        origin = self.values.constructor(receiver)
        local = self.classes.local(origin.name) if origin else None
        return local is None or self.classes.is_a(local, "torch.nn.Module")

    def _uses(self, name: cst.Name, owner: cst.CSTNode) -> list[cst.Name]:
        spelled = [each for each in self.tree.own(owner, cst.Name) if each.value == name.value and each is not name]
        found = [each for each in spelled if not self.names.is_word(each)]
        return [each for each in found if self.names.bindings.lookup(each)[:1] == self.names.bindings.lookup(name)]

    def _leaks(self, name: cst.Name, owner: cst.CSTNode) -> bool:
        """Whether a nested function, or another scope, uses the name too."""
        everywhere = [each for each in self.tree.within(owner, cst.Name) if each.value == name.value]
        return bool(self.tree.own(owner, cst.Global, cst.Nonlocal)) and len(everywhere) > 1

    def _eats(self, use: cst.BaseExpression) -> bool:
        """Whether a use surely takes everything out of the generator."""
        above = self.tree.parent(use)
        if isinstance(above, (cst.For, cst.CompFor)) and above.iter is use:
            return isinstance(above, cst.CompFor) or not self.tree.own(above.body, cst.Break, cst.Return)
        if isinstance(above, cst.DictElement) and self.names.constant(above.key) == "params":
            lists = [each for each in self.tree.ancestors(above) if isinstance(each, cst.Call)]
            return bool(lists) and self._is_optimizer(lists[0])
        call = self.tree.parent(above) if isinstance(above, cst.Arg) else None
        if not isinstance(call, cst.Call) or not isinstance(above, cst.Arg) or above.star:
            return False
        name = self.names.of(call.func) or ""
        first = self.names.argument(call, "parameters", 0) is above or self.names.argument(call, "params", 0) is above
        return first and (name in _EATERS or self.facts.updates.clips(call) or self._is_optimizer(call))

    def _is_optimizer(self, call: cst.Call) -> bool:
        return self.classes.name_is_a(self.names.of(call.func), "torch.optim.Optimizer")

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Generators that somebody goes over when nothing is left in them."""
        for event in entry.of(UsedUp):
            yield Fault.at(
                event, "goes over a generator that is used up before: nothing is left in it here", event.first
            )


def _place(value: cst.BaseExpression | None, name: str) -> tuple[int, ...] | None:
    """Where a name stands in what a function returns: alone, or as an item of a tuple."""
    if isinstance(value, (cst.Tuple, cst.List)):
        found = [number for number, each in enumerate(value.elements) if _is_named(each.value, name)]
        starred = any(isinstance(each, cst.StarredElement) for each in value.elements)
        return (found[0],) if len(found) == 1 and not starred else None
    return () if _is_named(value, name) else None


def _is_named(value: cst.BaseExpression | None, name: str) -> bool:
    return isinstance(value, cst.Name) and value.value == name
