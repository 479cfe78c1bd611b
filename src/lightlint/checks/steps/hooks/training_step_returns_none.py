from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import StepReturned
from lightlint.explore.questions.queries import in_sight
from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.lightning.hooks import TRAINING_STEP, Hook, Owner
from lightlint.facts.ranks.world import Ranks
from lightlint.finding import Tier
from lightlint.values.core import Class, Function, is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_EXHAUSTIVE = (cst.Equal, cst.Is, cst.In)


class TrainingStepReturnsNone(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        node = self.tree.class_of(function)
        if node is None or self.hooks.of(function) != Hook(Owner.MODULE, TRAINING_STEP):
            return
        if self.classes.constant(node, "automatic_optimization", True) is not True or self._is_open(function):
            return
        returns = self.tree.own(function, cst.Return)
        losses = [each for each in returns if not self._may_be_none(each.value)]
        flow = self.facts.flow(function)
        if not flow.reaches(flow.start, losses):
            return
        rescues = [each.handler for each in self.facts.rescues.all]
        for each in returns:
            rescued = any(self.tree.contains(handler, each) for handler in rescues)
            if each not in losses and not rescued and flow.point_of(each) is not None:
                self._report(each, "`training_step` returns None here")
        if flow.reaches(flow.start, [flow.end], avoiding=[*returns, *rescues]) and not self._is_a_choice(losses):
            self._report(function.name, "`training_step` can end without returning a loss")

    def _is_open(self, function: cst.FunctionDef) -> bool:
        """Whether a step is called in another way: once per optimizer (Lightning 1), or as a generator."""
        names = {each.name.value for each in function.params.params}
        return "optimizer_idx" in names or "dataloader_iter" in names or bool(self.tree.own(function, cst.Yield))

    def _may_be_none(self, value: cst.BaseExpression | None) -> bool:
        if isinstance(value, cst.IfExp):
            return self._may_be_none(value.body) or self._may_be_none(value.orelse)
        return value is None or dotted_name(value) == "None"

    def _is_a_choice(self, losses: list[cst.Return]) -> bool:
        """Whether losses are returned under tests for the cases of one thing, of which the last may be left unsaid."""
        tests = [test for each in losses for test, _ in self.facts.conditions(each)]
        by_pattern = any(isinstance(above, cst.Match) for each in losses for above in self.tree.ancestors(each))
        return by_pattern or any(
            self.names.method(test) in {"isinstance", "startswith", "hasattr"}
            or (isinstance(test, cst.Comparison) and isinstance(test.comparisons[0].operator, _EXHAUSTIVE))
            for test in tests
        )

    def _guards(self, node: cst.CSTNode) -> bool:
        """Whether a step is left where it was given no batch: loaders give one, unless a function of the program's own does not."""
        function = self.tree.function(node)
        given = {each.name.value for each in function.params.params} if function is not None else set()
        return any(_asks_for_none(test, outcome=outcome) in given for test, outcome in self.facts.conditions(node))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """A None that a step gives back from somewhere else, where it gives a loss on another path."""
        given = [event for event in entry.of(StepReturned) if event.automatic and event.written]
        losses = {event.module.cls for event in given if not is_constant(event.result, None)}
        for event in given:
            none = is_constant(event.result, None) and event.module.cls in losses and in_sight([event.module])
            node = self.node_of(event.site) if none and not _is_called_otherwise(event) else None
            handlers = [*self.tree.ancestors(node)] if node is not None else []
            if node is not None and not any(isinstance(each, cst.ExceptHandler) for each in handlers):
                message, tier = self._judged("`training_step` returns None here", node)
                yield Fault.at(event, message, tier=tier)

    def _report(self, node: cst.CSTNode, what: str) -> None:
        message, tier = self._judged(what, node)
        self.report(node, message, tier=tier)

    def _judged(self, what: str, node: cst.CSTNode) -> tuple[str, Tier]:
        several = self.facts.world.lightning is Ranks.MANY and not self._guards(node)
        if self.facts.lightning.surely_at_least("2.3"):
            effect = "Lightning raises on this rank, the others hang or die"
        elif self.facts.lightning.surely_below("2.3"):
            effect = "the other ranks wait for this one"
        else:
            effect = "this rank raises or leaves the others waiting"
        short = effect if several else f"the batch is skipped; with several ranks {effect}"
        return f"{what}: {short}", Tier.WARNING if several else Tier.NOTE


def _asks_for_none(test: cst.BaseExpression, *, outcome: bool) -> str | None:
    """The name that a test which came out so says is None, or nothing at all."""
    if isinstance(test, cst.Name):
        return None if outcome else test.value
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or not isinstance(test.left, cst.Name):
        return None
    asked = test.comparisons[0]
    equal, unequal = (
        isinstance(asked.operator, (cst.Is, cst.Equal)),
        isinstance(asked.operator, (cst.IsNot, cst.NotEqual)),
    )
    is_none = dotted_name(asked.comparator) == "None" and (equal if outcome else unequal)
    return test.left.value if is_none else None


def _is_called_otherwise(event: StepReturned) -> bool:
    """Whether a step is called once for each optimizer (Lightning 1), or draws its batches itself."""
    cls = event.module.cls
    step = cls.find("training_step") if isinstance(cls, Class) else None
    names = {each.arg for each in step.node.args.args} if isinstance(step, Function) else set()
    return bool(names & {"optimizer_idx", "dataloader_iter"})
