from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import ScheduleStepped, Stepped
from lightlint.explore.queries import optimizer_of
from lightlint.facts.bindings import Kind
from lightlint.facts.tree import Loop
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import Draft
from lightlint.fixes.moves import block_of, move_after
from lightlint.values.core import Site
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


_SETS_FIRST_VALUE = "1.1"  # before, a scheduler's first step set the first value: it belonged ahead of the optimizer
_PLATEAU = "torch.optim.lr_scheduler.ReduceLROnPlateau"
_SPELLED = {"scheduler", "lr_scheduler", "sched", "lr_sched"}
_DEPTH = 3


class SchedulerBeforeOptimizer(Check):
    def visit_Call(self, call: cst.Call) -> None:
        sure = self.facts.updates.is_scheduler_step(call)
        if call.args or not (sure or self._is_spelled(call)) or not self.facts.torch.may_be_at_least(_SETS_FIRST_VALUE):
            return
        origins = self.values.origins(call.func.value) if isinstance(call.func, cst.Attribute) else ()
        if any(origin.name == _PLATEAU for origin in origins) or self._is_tested(call):
            return
        later = self._later_step(call, 0)
        if later is not None:
            self.report(
                call,
                "steps the scheduler ahead of the optimizer: the first value of its schedule is never used",
                repair=Repair("step the scheduler behind the optimizer", self._draft(call), Applicability.UNSAFE),
                tier=None if sure else Tier.WARNING,
            )

    def _is_spelled(self, call: cst.Call) -> bool:
        """Whether a parameter out of sight is told to step, and called a scheduler of learning rates."""
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        if not isinstance(receiver, cst.Name) or self.names.method(call) != "step" or self.values.origins(receiver):
            return False
        bound = self.names.bindings.lookup(receiver)
        return receiver.value in _SPELLED and all(each.kind is Kind.PARAMETER for each in bound) and bool(bound)

    def _is_tested(self, call: cst.Call) -> bool:
        """Whether a test of the same iteration decides about the call, as `if epoch > 0` does."""
        loops = self.tree.loops(call)
        tests = [test for test, _ in self.facts.conditions(call) if not self._names_phase(test)]
        return any(not loops or self.tree.contains(loops[0].body, test) for test in tests)

    def _names_phase(self, test: cst.BaseExpression) -> bool:
        """Whether a test only asks which phase a loop is in: `phase == "train"`."""
        match test:
            case cst.Comparison(left=cst.Name() as name, comparisons=[cst.ComparisonTarget(cst.Equal(), value)]):
                bound = self.names.bindings.lookup(name)
                looped = bool(bound) and all(each.kind is Kind.LOOP for each in bound)
                return looped and isinstance(self.names.constant(value), str)
        return False

    def _later_step(self, node: cst.Call, depth: int) -> cst.Call | None:
        """The optimizer step that comes behind a node in its iteration, if none can come before the node."""
        owner = self.tree.owner(node)
        flow, loops = self.facts.flow(owner), self.tree.loops(node)
        steps = [each for each in self.facts.steps.runs(self._body(owner), self._steps) if each is not node]
        if loops:
            inside = [each for each in steps if self.tree.contains(loops[0].body, each)]
            before = any(flow.reaches_in_same_iteration(loops[0], each, [node]) for each in inside)
            outside = any(each not in inside and flow.reaches(each, [node]) for each in steps)
            behind = [each for each in inside if flow.reaches_in_same_iteration(loops[0], node, [each])]
            return behind[0] if behind and not before and not outside else None
        if any(flow.reaches(each, [node]) for each in steps):
            return None
        behind = [each for each in steps if flow.reaches(node, [each])]
        calls = self.hooks.calls_of.get(owner, ()) if isinstance(owner, cst.FunctionDef) else ()
        if not calls or depth >= _DEPTH or not behind:
            return None
        return behind[0] if all(self._is_first(each) for each in calls) else None

    def _is_first(self, call: cst.Call) -> bool:
        """Whether a helper is called in a loop, without another optimizer step before it."""
        owner = self.tree.owner(call)
        others = [each for each in self.facts.steps.runs(self._body(owner), self._steps) if each is not call]
        same = {self.hooks.callee(call)}
        others = [each for each in others if self.hooks.callee(each) not in same]
        return bool(self.tree.loops(call)) and not any(self.facts.flow(owner).reaches(each, [call]) for each in others)

    def _body(self, owner: cst.FunctionDef | cst.Module) -> cst.CSTNode:
        return owner.body if isinstance(owner, cst.FunctionDef) else owner

    def _steps(self, call: cst.Call) -> bool:
        return not self.facts.updates.is_scheduler_step(call) and self.facts.accumulation.is_step(call)

    def _draft(self, call: cst.Call) -> Draft | None:
        """The call behind the last statement of its block that steps the optimizer."""
        statement = self.tree.statement(call)
        loops: list[Loop] = self.tree.loops(call)
        block = block_of(self.code, statement)
        body = loops[0].body if loops else self._body(self.tree.owner(call))
        if not isinstance(statement, cst.Expr) or block is not body or self._skips(loops):
            return None
        holding = [
            above
            for step in self.facts.steps.runs(body, self._steps)
            for above in (self.tree.statement(step), *self.tree.ancestors(step))
            if above is not None
            and block_of(self.code, above) is block
            and isinstance(above, (cst.BaseSmallStatement, cst.BaseCompoundStatement))
        ]
        return move_after(self.code, statement, holding[-1]) if holding else None

    def _skips(self, loops: list[Loop]) -> bool:
        """Whether an iteration may end before the end of the loop's body."""
        return bool(loops) and any(
            self.tree.loops(each)[:1] == loops[:1] for each in self.tree.own(loops[0].body, cst.Continue)
        )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Schedules whose first step comes ahead of the first one of their optimizer, in the same turn, on each path."""
        if not self.facts.torch.may_be_at_least(_SETS_FIRST_VALUE):
            return
        early: dict[Site, ScheduleStepped] = {}
        late: set[Site] = set()
        for path in entry.paths:
            found = dict(_first_steps(path))
            early.update({event.site: event for event, is_early in found.items() if is_early})
            late |= {event.site for event, is_early in found.items() if not is_early}
        message = "steps the scheduler ahead of the optimizer: the first value of its schedule is never used"
        yield from (Fault.at(event, message) for site, event in early.items() if site not in late)


def _first_steps(path: Path) -> Iterator[tuple[ScheduleStepped, bool]]:
    """The first step of each schedule at each place, and whether its optimizer first steps behind it, in the same turn."""
    seen: set[Site] = set()
    stepped: set[Instance] = set()
    waiting: dict[Instance, ScheduleStepped] = {}
    for event in path.events:
        if isinstance(event, ScheduleStepped) and event.site not in seen and not event.implicit:
            seen.add(event.site)
            optimizer = optimizer_of(event.schedule)
            if optimizer is None or optimizer in stepped or event.args or event.where.depends_on("index"):
                yield event, False
            else:
                waiting.setdefault(optimizer, event)
        elif isinstance(event, Stepped):
            stepped.add(event.optimizer)
            before = waiting.pop(event.optimizer, None)
            if before is not None:
                turns = before.where.turns
                yield before, event.via != "lightning" and bool(turns) and event.where.turns[: len(turns)] == turns
