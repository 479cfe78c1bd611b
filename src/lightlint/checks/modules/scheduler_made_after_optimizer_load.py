from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import ScheduleMade, StateLoaded
from lightlint.values.core import Sequence, Value, is_constant, number_of
from lightlint.values.training import Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_ROOM = "torch.optim.lr_scheduler."
# these multiply the rate that they find when they are made, and take it for scaled from then on
_FACTORS = {f"{_ROOM}LinearLR": "start_factor", f"{_ROOM}ConstantLR": "factor"}
_JOINING = {f"{_ROOM}SequentialLR", f"{_ROOM}ChainedScheduler"}
# these go on from the rate they find; the others work each one out anew
_STEPWISE = {
    f"{_ROOM}{name}"
    for name in (
        "LinearLR",
        "ConstantLR",
        "StepLR",
        "MultiStepLR",
        "ExponentialLR",
        "PolynomialLR",
        "CosineAnnealingLR",
    )
}


class SchedulerMadeAfterOptimizerLoad(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        key = self.names.key(assign.targets[0].target) if isinstance(assign.value, cst.Call) else ""
        given = self._optimizer(assign.value) if key and isinstance(assign.value, cst.Call) else ""
        if not given or not isinstance(assign.value, cst.Call):
            return
        owner = self.tree.owner(assign)
        loads = [each for each in self.tree.own(owner, cst.Call) if self.names.method(each) == "load_state_dict"]
        before = [each for each in loads if self._receiver(each) == given]
        after = [each for each in loads if self._receiver(each) == key]
        made = self._maker(assign.value)
        if not before or not after or made is None:
            return
        flow = self.facts.flow(owner)
        first = [each for each in before if flow.reaches(each, [assign.value])]
        later = [each for each in after if flow.reaches(assign.value, [each])]
        again = any(flow.reaches(assign.value, [each]) for each in before) or self._sets_rate()
        if first and later and not again:
            name = (self.names.call(made) or "").rpartition(".")[2]
            self.report(
                assign.value,
                f"`{name}` scales the learning rate that `{given}.load_state_dict` brought back, and its own state does not undo that",
            )

    def _receiver(self, call: cst.Call) -> str:
        return self.names.key(call.func.value) if isinstance(call.func, cst.Attribute) else ""

    def _optimizer(self, call: cst.Call) -> str:
        """The optimizer that a call makes a scheduler for, as it is spelled there."""
        full = self.names.call(call) or ""
        if full in {*_FACTORS, *_JOINING}:
            given = self.names.argument(call, "optimizer", 0)
            if full.endswith("ChainedScheduler"):
                given = next((arg for each in self._parts(call) for arg in each.args[:1]), None)
            return self.names.key(given.value) if given is not None else ""
        callee = self.hooks.callee(call)
        if callee is None or (made := self._maker(call)) is None or self._optimizer(made) == "":
            return ""
        inner = self._optimizer(made)
        params = {each.name.value for each in self.tree.within(callee.params, cst.Param)}
        return self.names.key(self.values.given(callee, call, inner)) if inner in params else ""

    def _maker(self, call: cst.Call) -> cst.Call | None:
        """The one call that makes the scheduler which a call gives, if it is one that scales the rate at once."""
        full = self.names.call(call) or ""
        if self.names.has_star(call) or self.names.argument(call, "last_epoch", 4) is not None:
            return None
        if full in _FACTORS:
            return call if self._scales(call) else None
        if full in _JOINING:
            parts = self._parts(call)
            if full == f"{_ROOM}SequentialLR":
                return call if parts and self.names.call(parts[-1]) in _STEPWISE else None
            return next((each for each in parts if self._scales(each)), None)
        callee = self.hooks.callee(call)
        returned = self.values.returns(callee) if callee is not None and not callee.decorators else []
        sources = self.facts.reaching.sources(returned[0]) if len(returned) == 1 and returned[0] is not None else []
        made = sources[0] if len(sources) == 1 else None
        scheduler = isinstance(made, cst.Call) and self.names.call(made) in {*_FACTORS, *_JOINING}
        return self._maker(made) if scheduler and isinstance(made, cst.Call) else None

    def _scales(self, call: cst.Call) -> bool:
        """Whether a scheduler surely multiplies the rate by something else than 1 when it is made."""
        word = _FACTORS.get(self.names.call(call) or "")
        factor = self.names.argument(call, word, 1) if word else None
        number = self.names.constant(factor.value) if factor is not None else 0
        return word is not None and isinstance(number, (int, float)) and number != 1

    def _parts(self, call: cst.Call) -> list[cst.Call]:
        """The schedulers that one is made of."""
        found: list[cst.Call] = []
        for arg in call.args:
            for source in self.facts.reaching.sources(arg.value):
                for element in source.elements if isinstance(source, (cst.List, cst.Tuple)) else ():
                    found += [each for each in self.facts.reaching.sources(element.value) if isinstance(each, cst.Call)]
        return found

    def _sets_rate(self) -> bool:
        """Whether the file writes learning rates itself."""
        targets = (each.target for each in self.tree.all(cst.AssignTarget))
        return any(
            isinstance(each, cst.Subscript)
            and isinstance(index := each.slice[0].slice, cst.Index)
            and self.names.constant(index.value) == "lr"
            for each in targets
        )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Schedules that scale the rate when they are made, behind the load of their optimizer and before their own."""
        for path in entry.paths:
            loads = path.of(StateLoaded)
            for made in path.of(ScheduleMade):
                optimizer, name = made.schedule.optimizer, _scaling(made.schedule)
                if not name or optimizer is None:
                    continue
                own = [each for each in loads if each.object is made.schedule and each.time > made.time]
                before = [each for each in loads if each.object is optimizer and each.time < made.time]
                again = any(each.object is optimizer and each.time > made.time for each in loads)
                if own and before and not again and not self._sets_rate():
                    message = f"`{name}` scales the learning rate that `load_state_dict` brought back, and its own state does not undo that"
                    yield Fault.at(made, message)


def _scaling(schedule: Value) -> str:
    """The name of a schedule that scales the rate as soon as it is made, empty for another."""
    if not isinstance(schedule, Schedule) or schedule.open_arguments:
        return ""
    full, given = f"{_ROOM}{schedule.name}", schedule.arguments
    last = given.get("last_epoch", given.get("#4"))
    if last is not None and not is_constant(last, -1):
        return ""
    if full in _FACTORS:
        factor = number_of(given.get(_FACTORS[full], given.get("#1")))
        unset = _FACTORS[full] not in given and "#1" not in given
        return schedule.name if unset or (factor is not None and factor != 1) else ""
    parts = given.get("schedulers", given.get("#0" if full.endswith("ChainedScheduler") else "#1"))
    held = parts.items if isinstance(parts, Sequence) and not parts.more else []
    if full.endswith("SequentialLR"):
        return schedule.name if held and f"{_ROOM}{getattr(held[-1], 'name', '')}" in _STEPWISE else ""
    return next(filter(None, map(_scaling, held)), "") if full in _JOINING else ""
