from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Cleared, Stepped
from lightlint.explore.queries import identity, in_batch, in_sight
from lightlint.facts.bindings import Kind
from lightlint.facts.classes import MODULE
from lightlint.facts.hooks import TRAINING_STEP, Hook, Owner
from lightlint.facts.lent import lenders, lent_optimizer, sources
from lightlint.facts.steps import Overrides
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, insert_after, insert_before
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site


class MissingZeroGrad(Check):
    def visit_Call(self, call: cst.Call) -> None:
        steps = self.facts.steps
        optimizer = steps.optimizer(call) or lent_optimizer(self.facts, call)
        if optimizer is None:
            return
        turn = self._turn(call, optimizer)
        where = self._in_loop(call, turn, optimizer) or self._in_manual_step(call, turn, optimizer)
        if not where:
            self._judge_overrides(call, turn, optimizer)
            return
        if steps.leaves_sight(optimizer):
            return
        name = self.code.text_of(optimizer)
        self.report(
            call,
            f"{where} clears the gradients of `{name}`, so each step uses the sum over all batches so far",
            repair=Repair(f"call `{name}.zero_grad()`", self._draft(call, optimizer), Applicability.UNSAFE),
        )

    def _judge_overrides(self, call: cst.Call, turn: cst.CSTNode, optimizer: cst.BaseExpression) -> None:
        """Classes that put a method of their own in the place of the one that clears, and run the inherited loop."""
        base = self.tree.enclosing_class(call)
        if base is None or self.facts.steps.leaves_sight(optimizer):
            return
        for node in self.tree.all(cst.ClassDef):
            if node is base or self.names.defined(base) not in self.classes.ancestors(node):
                continue
            overrides = self.facts.steps.overrides(node, base)
            lost = [new for old, new in overrides.items() if self.facts.steps.may_clear(old.body, optimizer)]
            if self.tree.function(call) in overrides or not self.classes.complete(node) or len(lost) != 1:
                continue
            if self._in_loop(call, turn, optimizer, overrides):
                name = self.code.text_of(optimizer)
                self.report(
                    lost[0].name,
                    f"takes the place of what clears the gradients of `{name}`: each step uses the sum over all batches so far",
                )

    def _turn(self, call: cst.Call, optimizer: cst.BaseExpression) -> cst.CSTNode:
        """The outermost loop that takes another optimizer each time, `for opt in optimizers`; the step if none does."""
        words = [name for name in (optimizer, *self.tree.within(optimizer, cst.Name)) if isinstance(name, cst.Name)]
        bound = [each.site for word in words for each in self.names.bindings.lookup(word) if each.kind is Kind.LOOP]
        around = [loop for loop in self.tree.loops(call) if isinstance(loop, cst.For)]
        taken = [loop for loop in around if any(self.tree.contains(loop.target, site) for site in bound)]
        return taken[-1] if taken else call

    def _in_loop(
        self, call: cst.Call, turn: cst.CSTNode, optimizer: cst.BaseExpression, overrides: Overrides | None = None
    ) -> str:
        """What clears nothing: a loop that repeats backward pass and step on an optimizer made outside of it."""
        steps = self.facts.steps
        for loop, node in steps.repeated(turn, self.loops.is_backward):
            if overrides and self.tree.function(loop) in overrides:
                continue
            around = self.tree.loops(loop)
            rare = bool(self._tests(call)) or any(self.tree.contains(loop, test) for test, _ in self._tests(node))
            place = around[-1] if rare and around else loop  # a step under a test may be the only one of an outer loop
            if steps.may_clear(place, optimizer, overrides):
                continue
            fresh = self._fresh(optimizer)
            if fresh is not None and not any(self.tree.contains(loop, each) for each in fresh):
                return "nothing in the loop"
        return ""

    def _fresh(self, optimizer: cst.BaseExpression) -> list[cst.CSTNode] | None:
        """Where an optimizer is made and bound, None for one that is not surely torch's."""
        origins = self.values.origins(optimizer)
        if not origins:
            ways = lenders(self.facts, optimizer)
            return sources(self.facts, ways) if ways else None
        return [*(each.call for each in origins if each.call is not None), *self._bound(optimizer)]

    def _bound(self, optimizer: cst.BaseExpression) -> list[cst.CSTNode]:
        """Where the object is bound of which an optimizer is an attribute: with each one comes another optimizer."""
        root = optimizer
        while isinstance(root, cst.Attribute):
            root = root.value
        if root is optimizer or not isinstance(root, cst.Name):
            return []
        return [each.site for each in self.names.bindings.lookup(root)]

    def _tests(self, node: cst.CSTNode) -> list[tuple[cst.BaseExpression, bool]]:
        loops = self.tree.loops(node)
        return [each for each in self.facts.conditions(node) if not loops or self.tree.contains(loops[0].body, each[0])]

    def _in_manual_step(self, call: cst.Call, turn: cst.CSTNode, optimizer: cst.BaseExpression) -> str:
        """What clears nothing: a class that steps by hand in its `training_step`, all of which is in sight."""
        node = self.tree.enclosing_class(call)
        if node is None or self.tree.loops(turn) or Hook(Owner.MODULE, TRAINING_STEP) not in self.hooks.around(call):
            return ""
        above = [name for name in self.classes.ancestors(node) if not self._is_library(name)]
        family = [node, *filter(None, map(self.classes.local, above))]
        by_hand = self.classes.constant(node, "automatic_optimization", True) is False
        if not by_hand or len(family) <= len(above) or not self.classes.is_a(node, MODULE):
            return ""
        trains = any(map(self.loops.is_backward, chain(*(self.tree.within(each, cst.Call) for each in family))))
        clears = any(self.facts.steps.may_clear(each, optimizer) for each in family)
        return f"nothing in `{node.name.value}`" if trains and not clears else ""

    def _is_library(self, name: str) -> bool:
        return name.startswith(("lightning.", "torch.", "builtins.", "abc.", "typing."))

    def _draft(self, call: cst.Call, optimizer: cst.BaseExpression) -> Draft | None:
        """The call in front of the one backward pass beside the step, else behind the step."""
        name = self.code.text_of(optimizer)
        statement = self.tree.statement(call)
        if not isinstance(statement, cst.BaseSmallStatement):
            return None
        body = self.tree.parent(self.tree.parent(statement) or statement)
        backwards = [
            self.tree.statement(each)
            for each in self.tree.own(self.tree.owner(call), cst.Call)
            if self.loops.is_backward(each) and self.tree.loops(each)[:1] == self.tree.loops(call)[:1]
        ]
        first = backwards[0] if len(backwards) == 1 else None
        beside = (
            isinstance(first, cst.BaseSmallStatement) and self.tree.parent(self.tree.parent(first) or first) is body
        )
        early = first is not None and self.tree.order(first) < self.tree.order(statement)
        if (
            isinstance(first, cst.BaseSmallStatement)
            and beside
            and early
            and not self._is_bound_behind(first, optimizer)
        ):
            return insert_before(self.code, first, f"{name}.zero_grad()")
        return insert_after(self.code, statement, f"{name}.zero_grad()")

    def _is_bound_behind(self, statement: cst.BaseSmallStatement, optimizer: cst.BaseExpression) -> bool:
        """Whether a name in an expression gets its value behind a statement of its function: it is not to be used there."""
        names = self.tree.within(optimizer, cst.Name)
        sites = [each.site for name in names for each in self.names.bindings.lookup(name)]
        return any(
            self.tree.owner(site) is self.tree.owner(statement) and self.tree.order(site) > self.tree.order(statement)
            for site in sites
        )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients that a step has used, added to by the next backward pass and used again; no path clears them."""
        message = "nothing clears the gradients between two steps: each step uses the sum over all batches so far"
        yield from (Fault.at(step, message) for step in _faults(entry))

    def clears(self, entry: Entry) -> Iterator[Site]:
        """Steps whose gradients were cleared since the step before, on each path."""
        again = [each for path in entry.paths for each in _again(path)]
        stale = {site for event, parameter in again if parameter is not None for site in event.where.places}
        yield from (site for event, _ in again for site in event.where.places if site not in stale)


def _faults(entry: Entry) -> Iterator[Stepped]:
    """Steps by gradients of before, of parameters that nothing clears, or only something outside of their loop over batches."""
    events = [event for event in entry.of(Cleared) if not event.implicit]
    cleared = {identity(each) for event in events for each in event.parameters}
    often = {identity(each) for event in events if in_batch(event.where) for each in event.parameters}
    for path in entry.paths:
        for step, parameter in _again(path):
            if parameter is None or parameter.gradient_touched or parameter.escaped:
                continue
            kept = identity(parameter) not in (often if in_batch(step.where) else cleared)
            if kept and in_sight([step.optimizer]) and step.via != "lightning":
                yield step


def _again(path: Path) -> Iterator[tuple[Stepped, Tensor | None]]:
    """The steps that are not the first with their parameters, and a parameter that still held what an earlier one used."""
    added: set[Tensor] = set()
    stepped: set[Tensor] = set()
    used: set[Tensor] = set()
    stale: set[Tensor] = set()
    for event in path.events:
        if isinstance(event, Backward):
            added |= set(event.parameters)
            stale |= used & set(event.parameters)
        elif isinstance(event, Cleared):
            for group in (added, used, stale):
                group -= set(event.parameters)
        elif isinstance(event, Stepped):
            if stepped & added & set(event.parameters):
                yield event, next((each for each in event.parameters if each in stale), None)
            stepped |= added & set(event.parameters)
            used |= added & set(event.parameters)
