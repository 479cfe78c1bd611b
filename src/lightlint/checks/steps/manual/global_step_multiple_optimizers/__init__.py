from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.checks.steps.manual.global_step_multiple_optimizers.batch_counts import BatchCounts
from lightlint.engine.events import Configured, Stepped
from lightlint.explore.questions.queries import in_batch, in_sight
from lightlint.finding import Tier
from lightlint.values.core import number_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_COUNTS = {"self.global_step", "self.trainer.global_step"}
_PARTS = (cst.Divide, cst.FloorDivide, cst.Modulo)
_DEPTH = 4


class GlobalStepMultipleOptimizers(Check):
    def visit_Call(self, call: cst.Call) -> None:
        run = next((each for each in self.facts.training.runs if each.call is call), None)
        if run is None or run.entry != "fit" or run.trainer is None:
            return
        node = self.classes.local(run.module)
        given = self.names.argument(run.trainer, "max_steps")
        if node is None or given is None:
            return
        value = self.names.constant(given.value)
        steps = self._steps(node)
        in_batches = BatchCounts(self.facts).counts(given.value)
        if steps > 1 and ((isinstance(value, int) and value > 0) or in_batches):
            self.report(
                given,
                f"`max_steps` counts every optimizer step, and `{node.name.value}` makes {steps} a batch",
                tier=Tier.WARNING if in_batches else None,
            )

    def visit_Attribute(self, attribute: cst.Attribute) -> None:
        if attribute.attr.value != "global_step" or self.names.key(attribute) not in _COUNTS:
            return
        node = self.facts.optimization.step_class(attribute)
        steps = self._steps(node) if node is not None else 0
        if node is None or steps < 2:
            return
        if any(map(BatchCounts(self.facts).counts, self._limits(attribute, 0))):
            self.report(
                attribute,
                f"`{self.names.key(attribute)}` counts every optimizer step, of which `{node.name.value}` makes {steps} "
                "a batch, and meets a number of batches",
                tier=Tier.WARNING,
            )

    def _limits(self, count: cst.BaseExpression, depth: int) -> Iterator[cst.BaseExpression]:
        """What a count is compared with or divided by, through a name and through the parameters of a function."""
        above = self.tree.parent(count)
        match above:
            case cst.Comparison() if len(above.comparisons) == 1:
                yield above.comparisons[0].comparator
            case cst.ComparisonTarget():
                comparison = self.tree.parent(above)
                if isinstance(comparison, cst.Comparison) and len(comparison.comparisons) == 1:
                    yield comparison.left
            case cst.BinaryOperation(operator=cst.Add(), right=cst.Integer()):
                yield from self._limits(above, depth)
            case cst.BinaryOperation() if above.left is count and isinstance(above.operator, _PARTS):
                yield above.right
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]) if depth < _DEPTH:
                if len(self.names.bindings.lookup(target)) == 1:
                    yield from self._of_reads(target.value, self.tree.owner(target), depth)
            case cst.Arg(star="") if depth < _DEPTH:
                yield from self._given_beside(above, depth)

    def _of_reads(self, name: str, owner: cst.CSTNode, depth: int) -> Iterator[cst.BaseExpression]:
        for read in self.tree.own(owner, cst.Name):
            if read.value == name:
                yield from self._limits(read, depth + 1)

    def _given_beside(self, arg: cst.Arg, depth: int) -> Iterator[cst.BaseExpression]:
        """What a call gives a function of this file for the parameter with which that compares the count."""
        call = self.tree.parent(arg)
        callee = self.hooks.callee(call) if isinstance(call, cst.Call) else None
        if callee is None or not isinstance(call, cst.Call):
            return
        names = [each.name.value for each in (*callee.params.params, *callee.params.kwonly_params)]
        given = {name: self.values.given(callee, call, name) for name in names}
        name = next((each for each in names if given[each] is arg.value), "")
        if len(self.names.bindings.lookup_in(name, callee)) != 1:
            return
        for limit in self._of_reads(name, callee, depth):
            beside = given.get(limit.value) if isinstance(limit, cst.Name) else None
            yield beside if beside is not None else limit

    def _steps(self, node: cst.ClassDef) -> int:
        """How many optimizers each batch surely steps: those stepped under no test and in no loop, by name."""
        if not self.facts.optimization.is_manual(node) or not self.facts.lightning.surely_at_least("1.6"):
            return 0
        keys: set[str] = set()
        for call in self.facts.optimization.calls(node):
            func = call.func
            plain = not self.tree.loops(call) and not self.facts.conditions(call)
            is_step = isinstance(func, cst.Attribute) and func.attr.value == "step"
            if (
                is_step
                and isinstance(func, cst.Attribute)
                and plain
                and self.facts.optimization.from_optimizers(func.value)
            ):
                keys.add(self.names.key(func.value))
        return len(keys)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Trainers told `max_steps` for a module that steps several optimizers in each batch."""
        for path in entry.paths:
            for event in path.of(Configured):
                limit = number_of(event.trainer.arguments.get("max_steps"))
                own = [each for each in path.of(Stepped) if each.optimizer in event.optimizers and in_batch(each.where)]
                first = [each for each in own if own and each.where.turns == own[0].where.turns]
                if event.automatic is not False or limit is None or limit <= 0 or not in_sight([event.module]):
                    continue
                if len({each.optimizer for each in first}) > 1 and event.trainer.site is not None:
                    message = (
                        f"`max_steps` counts every optimizer step, and `{event.module.name}` makes {len(first)} a batch"
                    )
                    yield Fault(event.trainer.site, message)
