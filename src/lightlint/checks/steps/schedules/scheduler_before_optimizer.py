from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import ScheduleStepped, Stepped
from lightlint.explore.questions.queries import identity_of, in_batch, optimizer_of
from lightlint.facts.code.tree import Loop
from lightlint.finding import Applicability, Tier
from lightlint.fixes.drafts.moves import block_of, move_after
from lightlint.values.core import Sequence, Site, is_constant
from lightlint.values.training import Instance, Optimizer, Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


_SETS_FIRST_VALUE = "1.1"  # before, a scheduler's first step set the first value: it belonged ahead of the optimizer


class SchedulerBeforeOptimizer(Check):
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
        for site, event in early.items():
            if site not in late and not self._is_for_older(event) and not self._is_moved(entry, event):
                steps = dict.fromkeys(place for each in entry.of(Stepped) for place in each.where.places)
                drops = _is_of_steps(event.schedule)
                # the rate of one epoch of those before a drop; torch warns of each
                one_of_many = drops or _is_endless(event)
                tier = Tier.WARNING if event.schedule.assumed or one_of_many else None
                tier = Tier.NOTE if in_batch(event.where) else tier  # one batch's of many
                lost = "its rate drops one step early" if drops else "the first value of its schedule is never used"
                message = f"steps the scheduler ahead of the optimizer: {lost}"
                yield Fault(site, message, tier, also=tuple(steps))

    def _is_for_older(self, event: ScheduleStepped) -> bool:
        """Whether a test keeps the step from the versions that want it behind the optimizer."""
        from lightlint.facts.releases.compat import is_for_older

        node = self.node_of(event.site)
        return node is not None and is_for_older(self.facts, node)

    def _is_moved(self, entry: Entry, early: ScheduleStepped) -> bool:
        """Whether the step has its place behind the optimizer where a test around it comes out the other way."""
        around = self._tests(early)
        for path in entry.paths:
            steps = dict(_first_steps(path))
            if any(event.site == early.site for event in steps):
                continue
            behind = [each for each, is_early in steps.items() if not is_early and _are_of_one(each, early)]
            if any(around.get(test) is (not outcome) for each in behind for test, outcome in self._tests(each).items()):
                return True
        return False

    def _tests(self, event: ScheduleStepped) -> dict[tuple[cst.CSTNode | None, str], bool]:
        """How the tests that a step stands under came out, by their function and what they ask without `not`."""
        node = self.node_of(event.site)
        if node is None:
            return {}
        found: dict[tuple[cst.CSTNode | None, str], bool] = {}
        for test, outcome in self.facts.conditions(node):
            asked, comes_out = test, outcome
            while isinstance(asked, cst.UnaryOperation) and isinstance(asked.operator, cst.Not):
                asked, comes_out = asked.expression, not comes_out
            found[self.tree.owner(node), self.code.text_of(asked)] = comes_out
        return found

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        """The call behind the last statement of its block that steps the optimizer."""
        statement = self.tree.statement(node)
        block = block_of(self.code, statement)
        loops = self.tree.loops(node)
        owner = self.tree.owner(node)
        body = loops[0].body if loops else owner.body if isinstance(owner, cst.FunctionDef) else owner
        if not isinstance(statement, cst.Expr) or block is not body or self._skips(loops):
            return None
        steps = [each for site in fault.also if (each := self.node_of(site)) is not None]
        holding = [
            above
            for step in steps
            for above in (self.tree.statement(step), *self.tree.ancestors(step))
            if isinstance(above, (cst.BaseSmallStatement, cst.BaseCompoundStatement))
            and block_of(self.code, above) is block
        ]
        last = max(holding, key=self.tree.order, default=None)
        draft = move_after(self.code, statement, last) if last is not None else None
        return Repair("step the scheduler behind the optimizer", draft, Applicability.UNSAFE)

    def _skips(self, loops: list[Loop]) -> bool:
        """Whether an iteration may end before the end of the loop's body."""
        return bool(loops) and any(
            self.tree.loops(each)[:1] == loops[:1] for each in self.tree.own(loops[0].body, cst.Continue)
        )


def _is_endless(event: ScheduleStepped) -> bool:
    """Whether a loop that nothing counts steps the schedule: it comes by many values."""
    loop = event.where.turns[-1].loop if event.where.turns else None
    return loop is not None and loop.kind == "while"


def _is_of_steps(schedule: Schedule) -> bool:
    """Whether a schedule stays at its first value for more than one step, and then drops."""
    plain = ("StepLR", "MultiStepLR")
    name = next((each.rpartition(".")[2] for each in schedule.libraries() if each.endswith(plain)), "")
    if name == "MultiStepLR":
        milestones = schedule.argument("milestones", 1)
        return not (isinstance(milestones, Sequence) and any(is_constant(each, 0, 1) for each in milestones.items))
    return name == "StepLR" and not is_constant(schedule.argument("step_size", 1), 1)


def _optimizer_of(path: Path, schedule: Schedule) -> Optimizer | None:
    """The optimizer of a schedule; of one that was given to the entry the only one that steps, if it was given, too."""
    if not schedule.assumed or schedule.escaped:
        return optimizer_of(schedule)
    stepped = {event.optimizer for event in path.of(Stepped)}
    only = stepped.pop() if len(stepped) == 1 else None
    return only if isinstance(only, Optimizer) and only.assumed and not only.escaped else None


def _first_steps(path: Path) -> Iterator[tuple[ScheduleStepped, bool]]:
    """The first step of each schedule at each place, and whether its optimizer first steps behind it, in the same turn."""
    seen: set[Site] = set()
    stepped: set[Instance] = set()
    waiting: dict[Instance, ScheduleStepped] = {}
    for event in path.events:
        if isinstance(event, ScheduleStepped) and event.site not in seen and not event.implicit:
            seen.add(event.site)
            optimizer = _optimizer_of(path, event.schedule)
            if optimizer is None or optimizer in stepped or event.args or event.where.depends_on("index"):
                yield event, False
            else:
                waiting.setdefault(optimizer, event)
        elif isinstance(event, Stepped):
            stepped.add(event.optimizer)
            before = waiting.pop(event.optimizer, None)
            if before is not None:
                yield before, event.via != "lightning" and _is_in_turn_of(before, event)


def _are_of_one(one: ScheduleStepped, other: ScheduleStepped) -> bool:
    return identity_of(one.schedule) == identity_of(other.schedule)


def _is_in_turn_of(before: ScheduleStepped, event: Stepped) -> bool:
    """Whether two things happen in one turn of a loop; each may be in further loops, but not in other turns of one."""
    shared = 0
    for one, other in zip(before.where.turns, event.where.turns, strict=False):
        if one != other:
            anew = all(turn.loop.known for turn in before.where.turns[shared:])  # else it steps more often, by design
            return shared > 0 and one.loop is not other.loop and anew
        shared += 1
    return shared > 0 and shared == len(before.where.turns)
