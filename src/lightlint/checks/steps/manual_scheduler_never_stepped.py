from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured, ScheduleStepped, Stepped
from lightlint.explore.queries import in_sight
from lightlint.facts.configured import CONFIGURE
from lightlint.facts.hooks import TRAINING_STEP

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_MAY_STEP = re.compile(r"(?<!training_)step|sched", re.IGNORECASE)
_SCHEDULERS = {"lr_schedulers", "lr_scheduler_configs", "lr_scheduler_step"}
_READS = {"get_last_lr", "last_epoch", "base_lrs", "state_dict"}  # what tells about a scheduler and steps none


class ManualSchedulerNeverStepped(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        node = self.tree.class_of(function)
        if node is None or self.hooks.of(function) != CONFIGURE:
            return
        facts = self.facts.optimization
        family = facts.family(node)
        if not family or not facts.is_manual(node) or facts.subclasses(node) or self._is_stepped_elsewhere():
            return
        returned = next((each for each in self.facts.configured.of(function) if each.schedulers), None)
        calls = [call for each in family for call in self.tree.within(each, cst.Call)]
        calls = [call for call in calls if not self._is_own(call, family)]
        if returned is not None and facts.backwards(node) and not any(map(self._may_step, calls)):
            self.report(
                returned.statement,
                f"nothing steps this scheduler: `{node.name.value}` optimizes by hand, so the learning rate never changes",
            )

    def _is_own(self, call: cst.Call, family: Sequence[cst.ClassDef]) -> bool:
        """Whether a call runs a method of the classes that are looked through: its body tells, not its name."""
        callee = self.hooks.callee(call)
        return callee is not None and any(self.tree.contains(each, callee) for each in family)

    def _may_step(self, call: cst.Call) -> bool:
        """Whether a call may step a scheduler: `step` of anything but an optimizer."""
        method = self.names.method(call)
        if method == "lr_schedulers":
            return False  # looked at by `_is_stepped_elsewhere`
        if method != "step":
            return bool(_MAY_STEP.search(method)) and not (self.names.of(call.func) or "").startswith("torch.")
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else call
        return not self.values.is_optimizer(receiver) and not self.facts.optimization.from_optimizers(receiver)

    def _is_stepped_elsewhere(self) -> bool:
        """Whether some code, of this file or of one that uses it, looks schedulers up for more than to read them."""
        looked = [each for each in self.tree.all(cst.Attribute) if each.attr.value in _SCHEDULERS]
        project, path = self.facts.project, self.facts.path
        return not all(map(self._is_read_only, looked)) or bool(project.users(path, "lr_schedulers", TRAINING_STEP))

    def _is_read_only(self, looked: cst.Attribute) -> bool:
        """Whether schedulers are looked up only for what `_READS` tells, at once or under names of a function."""
        call = self.tree.parent(looked)
        if not isinstance(call, cst.Call) or call.func is not looked:
            return False
        above = self.tree.parent(call)
        if not isinstance(above, cst.Assign):
            return isinstance(above, cst.Expr) or self._is_read(call)
        targets = [name for each in above.targets for name in self.tree.within(each, cst.Name, cst.Attribute)]
        owner = self.tree.owner(call)
        if not all(isinstance(each, cst.Name) for each in targets) or not isinstance(owner, cst.FunctionDef):
            return False
        words = {each.value for each in targets if isinstance(each, cst.Name)}
        uses = [each for each in self.tree.within(owner, cst.Name) if each.value in words and each not in targets]
        return all(map(self._is_read, uses))

    def _is_read(self, value: cst.CSTNode) -> bool:
        above = self.tree.parent(value)
        return isinstance(above, cst.Attribute) and (above.attr is value or above.attr.value in _READS)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Schedules that Lightning is given and nothing steps, on any path."""
        stepped = {event.schedule.site for event in entry.of(ScheduleStepped)}
        trained = any(entry.of(Stepped))
        for event in entry.of(Configured):
            for schedule in (each.schedule for each in event.schedules):
                if trained and not event.automatic and in_sight([schedule]) and schedule.site not in stepped:
                    name = event.module.name
                    message = (
                        f"nothing steps this scheduler: `{name}` optimizes by hand, so the learning rate never changes"
                    )
                    if schedule.site is not None:
                        yield Fault(schedule.site, message, also=tuple(call.site for call in event.where.calls))
