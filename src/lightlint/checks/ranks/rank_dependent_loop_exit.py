from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Collective, Event, Left
from lightlint.facts.bindings import Kind
from lightlint.facts.loops import LoopKind
from lightlint.facts.names import UNKNOWN
from lightlint.facts.rank_tests import COLLECTIVES, agrees, conjuncts, splits
from lightlint.facts.tree import Loop
from lightlint.facts.world import Ranks
from lightlint.values.core import Site

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_BRINGING = COLLECTIVES - {f"torch.distributed.{name}" for name in ("barrier", "reduce", "gather", "gather_object")}
_PLAIN = {"builtins.bool", "builtins.int", "builtins.float"}
_READING = {"item", "any", "all", "bool", "int", "cpu"}
_NUMBERS = {
    "item",
    "detach",
    "any",
    "all",
    "isnan",
    "isinf",
    "isfinite",
    "cpu",
    "float",
    "mean",
    "sum",
    "abs",
    "max",
    "numpy",
}
_JOINS = {"torch.distributed.algorithms.join.Join", "torch.distributed.algorithms.Join"}
_DEPTH = 4
_NEW = {f"torch.{name}" for name in ("zeros", "tensor", "full", "zeros_like", "as_tensor")}


class RankDependentLoopExit(Check):
    def visit_Break(self, node: cst.Break) -> None:
        self._judge(node)

    def visit_Return(self, node: cst.Return) -> None:
        self._judge(node)

    def visit_While(self, loop: cst.While) -> None:
        """The condition of a `while` leads out of it, too."""
        flags = [each for each in conjuncts(loop.test) if self.names.key(self._flag(each))]
        if flags and self._trains_together(loop):
            found = next((each for each in flags if self._is_set_on_some_ranks(each, loop)), None)
            if found is not None:
                self.report(
                    found, "what leads out of the loop here is decided on some ranks only: the others go on and wait"
                )

    def _trains_together(self, loop: Loop) -> bool:
        """Whether the passes of a loop exchange gradients with other ranks."""
        if self.loops.kind(loop) is LoopKind.OTHER or self.facts.world.raw is not Ranks.MANY:
            return False
        return bool(self.facts.processes.wraps and self.facts.steps.runs(loop.body, self.loops.is_backward))

    def _judge(self, node: cst.Break | cst.Return) -> None:
        loops = self.tree.loops(node)
        loop = loops[0] if loops else None
        if loop is None or not self._trains_together(loop):
            return
        tests = [test for test, _ in self.facts.conditions(node) if self.tree.contains(loop.body, test)]
        if any(splits(self.tree, self.names, self.guards, test) for test in tests):
            self.report(node, "only some ranks leave the loop here: the others wait in the next step's all-reduce")
        elif any(self._is_set_on_some_ranks(test, loop) for test in tests):
            self.report(
                node, "what leads out of the loop here is decided on some ranks only: the others go on and wait"
            )
        else:
            self._judge_own_loss(node, loop, tests)

    def _judge_own_loss(self, node: cst.CSTNode, loop: Loop, tests: list[cst.BaseExpression]) -> None:
        """Each rank asks the loss of its own batch, and no collective tells it what the others found."""
        losses = [loss for test in tests if (loss := self._own_loss(test, loop)) is not None]
        joined = any(self.names.call(call) in _JOINS for call in self.tree.all(cst.Call))
        if losses and not joined and not self.facts.steps.runs(loop.body, lambda call: agrees(self.names, call)):
            name = losses[0].value
            self.report(
                node,
                f"each rank decides by its own `{name}` whether it leaves the loop here: the others wait in the next step's all-reduce",
            )

    def _own_loss(self, value: cst.BaseExpression, loop: Loop, depth: int = 0) -> cst.Name | None:
        """The training loss of a loop that a test asks for, as it is or made into another number by calls in sight."""
        if depth > _DEPTH or not all(map(self._is_plain, self.tree.within(value, cst.Call))):
            return None
        for name in self.tree.within(value, cst.Name):
            if self.names.is_word(name):
                continue
            if self._is_trained_on(name, loop) and self.facts.criteria.is_mean(name):
                return name
            for each in self.facts.reaching.bindings(name):
                made = each.value if each.kind in {Kind.ASSIGN, Kind.AUGMENT} and not each.path else None
                inside = made is not None and self.tree.contains(loop.body, made)
                found = self._own_loss(made, loop, depth + 1) if made is not None and inside else None
                if found is not None:
                    return found
        return None

    def _is_plain(self, call: cst.Call) -> bool:
        """Whether a call gives the number of this rank: of a tensor's method, of torch or Python, or of a helper in sight."""
        name = self.names.call(call) or ""
        known = name.startswith(("torch.", "math.", "numpy.", "builtins.")) or self.names.method(call) in _NUMBERS
        return known or self.facts.steps.callee(call) is not None

    def _is_trained_on(self, loss: cst.Name, loop: Loop) -> bool:
        """Whether a loop runs the backward pass of what a name holds."""
        backwards = [each for each in self.tree.own(loop.body, cst.Call) if self.loops.is_backward(each)]
        started = [part for each in backwards for part in self.tree.within(each, cst.Name)]
        return any(each.value == loss.value for each in started)

    def _is_set_on_some_ranks(self, test: cst.BaseExpression, loop: Loop) -> bool:
        """Whether a flag is set under a rank test in the loop, and no collective brings it to the others."""
        key = self.names.key(self._flag(test))
        if not key or any(self._may_bring(call, key) for call in self.tree.within(loop.body, cst.Call)):
            return False
        inside = [each for each in self._changes(loop.body, key) if not self._is_start(each, loop)]
        methods = self._methods(loop.body, key)
        if methods is None:
            return False
        within = [(call, site) for call, method in methods for site in self._changes(method.body, key)]
        decided = [*((site,) for site in inside), *within]
        return bool(decided) and all(any(map(self._is_split, each)) for each in decided)

    def _is_split(self, node: cst.CSTNode) -> bool:
        return any(splits(self.tree, self.names, self.guards, test) for test, _ in self.facts.conditions(node))

    def _methods(self, body: cst.CSTNode, key: str) -> list[tuple[cst.Call, cst.FunctionDef]] | None:
        """The calls of a loop's own methods that change a flag of `self`, with these; None where others may bring it to
        the ranks: a collective anywhere, or a method out of sight."""
        found: list[tuple[cst.Call, cst.FunctionDef]] = []
        calls = self.tree.own(body, cst.Call) if key.startswith("self.") else []
        for call in calls:
            node = self.classes.self_class(call.func.value) if isinstance(call.func, cst.Attribute) else None
            method = self.hooks.callee(call) if node is not None else None
            if method is not None and self._changes(method.body, key):
                found.append((call, method))
        brought = found and self.facts.steps.runs(body, lambda each: self.names.call(each) in _BRINGING)
        return None if brought or (found and any(self._is_hidden(call) for call in calls)) else found

    def _is_hidden(self, call: cst.Call) -> bool:
        """Whether a call is given the object itself, or is of a method of it that stands in another file."""
        if any(self.classes.is_self(arg.value) for arg in call.args):
            return True
        func = call.func
        node = self.classes.self_class(func.value) if isinstance(func, cst.Attribute) else None
        if node is None or not isinstance(func, cst.Attribute) or self.hooks.callee(call) is not None:
            return False
        return not self.classes.attribute_sources(node, func.attr.value)

    def _flag(self, test: cst.BaseExpression) -> cst.BaseExpression:
        """The flag that a test asks for: `stop` of `stop.item() == 1`, `bool(stop)` and `not stop[0]`."""
        match test:
            case cst.UnaryOperation(operator=cst.Not()):
                return self._flag(test.expression)
            case cst.Comparison(comparisons=[only]) if self.names.constant(only.comparator) is not UNKNOWN:
                return self._flag(test.left)
            case cst.Call(args=[only]) if self.names.call(test) in _PLAIN:
                return self._flag(only.value)
            case cst.Call(func=cst.Attribute() as func, args=[]) if func.attr.value in _READING:
                return self._flag(func.value)
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer()))]):
                return test.value  # of a tensor; an item of a dict is a flag by itself
        return test

    def _may_bring(self, call: cst.Call, key: str) -> bool:
        """Whether a call may bring a flag to all ranks: a collective, a helper with one that names it, or one it is given to."""
        name = self.names.call(call)
        if name in _BRINGING:
            return True
        handed = [part for arg in call.args for part in self.tree.within(arg.value, cst.Name, cst.Attribute)]
        if not (name or "").startswith("builtins.") and any(self.names.key(part) == key for part in handed):
            return True
        helper = self.facts.steps.callee(call)
        parts = self.tree.within(helper.body, cst.Name, cst.Attribute) if helper is not None else ()
        named = any(self.names.key(part) == key for part in parts)
        return named and self.facts.steps.leads(call, lambda each: self.names.call(each) in _BRINGING)

    def _changes(self, body: cst.CSTNode, key: str) -> list[cst.Assign | cst.AugAssign | cst.Call]:
        """What assigns to a flag, to its items, or changes its tensor in place."""
        found: list[cst.Assign | cst.AugAssign | cst.Call] = []
        for assign in self.tree.own(body, cst.Assign, cst.AugAssign):
            targets = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else [assign.target]
            whole = [each.value for each in targets if isinstance(each, cst.Subscript)]
            found += [assign] if any(self.names.key(each) == key for each in (*targets, *whole)) else []
        for call in self.tree.own(body, cst.Call):
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value.endswith("_") and self.names.key(func.value) == key:
                found.append(call)
        return found

    def _is_start(self, site: cst.Assign | cst.AugAssign | cst.Call, loop: Loop) -> bool:
        """Whether the flag gets its first value of an iteration on every rank: a plain False, zero, or a new tensor."""
        line = self.tree.parent(self.tree.parent(site) or site)
        line = self.tree.parent(line or site) if isinstance(line, cst.SimpleStatementLine) else line
        if line is not loop.body:
            return False
        if isinstance(site, cst.Call):
            given = site.args[0].value if site.args else None
            return self.names.method(site) == "zero_" or (
                given is not None and self.names.constant(given) in (0, False)
            )
        value = self.names.constant(site.value)
        return isinstance(site, cst.Assign) and (value in (0, False) or self.names.call(site.value) in _NEW)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """A loop that one rank leaves, while the other goes on to a collective or to the gradients' all-reduce."""
        for first, second in entry.pairs():
            for path, other in ((first, second), (second, first)):
                left = {event.site for event in other.of(Left)}
                for event in path.of(Left):
                    if not event.leaves_loop or not event.where.depends_on("rank") or event.site in left:
                        continue
                    loop = event.where.turns[-1].loop.site
                    inside = [each for each in (*other.of(Collective), *other.of(Backward)) if _is_inside(each, loop)]
                    if any(isinstance(each, Collective) or _exchanges(each) for each in inside):
                        yield Fault.at(
                            event, "only some ranks leave the loop here: the others wait in the next step's all-reduce"
                        )


def _is_inside(event: Event, loop: Site) -> bool:
    return any(turn.loop.site == loop for turn in event.where.turns)


def _exchanges(event: Event) -> bool:
    """Whether a backward pass waits for the other ranks: it reaches parameters under DDP."""
    reached = event.parameters if isinstance(event, Backward) else []
    return any(each.owner is not None and each.owner.within_ddp is not None for each in reached)
