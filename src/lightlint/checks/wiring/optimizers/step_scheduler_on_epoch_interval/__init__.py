from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, TypeGuard

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.wiring.optimizers.step_scheduler_on_epoch_interval.lambda_schedules import (
    LAMBDA,
    handed,
    measures,
)
from lightlint.engine.events import Configured, ScheduleMade, ScheduleStepped
from lightlint.explore.questions.queries import configured_at, counts_batches, loader_lengths
from lightlint.facts.code.bindings import Kind
from lightlint.facts.lightning.configured import SCHEDULERS, Scheduler
from lightlint.finding import Applicability, Tier
from lightlint.fixes.drafts.entries import insert_entry
from lightlint.fixes.edits import wrap
from lightlint.values.core import Class, Constant, Function, Unknown, is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site, Value
    from lightlint.values.training import Instance, Schedule

# the arguments that say how long a schedule is, with their positions behind the optimizer
_HORIZONS = {
    "OneCycleLR": (("total_steps", 2), ("steps_per_epoch", 4)),
    "CyclicLR": (("step_size_up", 3),),
    "CosineAnnealingLR": (("T_max", 1),),
    "CosineAnnealingWarmRestarts": (("T_0", 1),),
    "LinearLR": (("total_iters", 3),),
    "ConstantLR": (("total_iters", 2),),
    "PolynomialLR": (("total_iters", 1),),
    "StepLR": (("step_size", 1),),
    "MultiStepLR": (("milestones", 1),),
    "SequentialLR": (("milestones", 2),),
}
_HUGGING_FACE = re.compile(r"(?:transformers|diffusers)\.(?:\w+\.)*get_(?:\w+_)?sche\w+$")
_HUGGING_FACE_HORIZONS = (("num_training_steps", 2), ("num_warmup_steps", 1))
_SURE = {"estimated_stepping_batches", "max_steps", "num_training_batches"}
_SPELLED = re.compile(r"(?:^|_)(?:total|train|training|num|n|max|warmup|decay)_?(?:\w+_)?(?:steps|iters|iterations)$")
_DEPTH = 4


class StepSchedulerOnEpochInterval(Check):
    def stands(self) -> bool:
        return not self.facts.configured.is_free

    def visit_Module(self, module: cst.Module) -> None:
        seen: set[cst.CSTNode] = set()
        for node, method in self.facts.configured.methods:
            if self.facts.training.automatic(node) is not True or self._steps_itself(node):
                continue
            for returned in self.facts.configured.of(method):
                for scheduler in returned.schedulers:
                    if scheduler.written not in seen and self._is_per_epoch(scheduler):
                        seen.add(scheduler.written)
                        self._look_at(scheduler)

    def _steps_itself(self, node: cst.ClassDef) -> bool:
        """Whether the class has a say in when schedulers step: one that only looks at their rates has none."""
        calls = {self.names.method(call): call for call in self.tree.within(node, cst.Call)}
        asked = calls.get("lr_schedulers")
        steps = asked is not None and ("step" in calls or isinstance(self.tree.parent(asked), cst.Arg))
        return self.classes.has_method(node, "lr_scheduler_step") or steps

    def _is_per_epoch(self, scheduler: Scheduler) -> bool:
        """Whether the Trainer steps it once per epoch; `interval` beside the optimizer is another rule's."""
        if scheduler.beside and (not scheduler.beside.closed or "interval" in scheduler.beside.values):
            return False
        config = scheduler.config
        if config is None:
            return True
        interval = self.names.constant(config.values["interval"]) if "interval" in config.values else "epoch"
        return (
            interval == "epoch"
            and config.closed
            and not any(key.lower() == "interval" for key in config.values.keys() - {"interval"})
        )

    def _look_at(self, scheduler: Scheduler) -> None:
        found = [self._horizon(each.name, each.call) for each in scheduler.origins]
        if not found or None in found or "" in {each[0] for each in found if each}:
            return
        argument, sure = next(each for each in found if each)
        name = scheduler.origins[0].name.rpartition(".")[2]
        self.report(
            scheduler.written,
            f"`{name}` counts batches (`{argument}`), the Trainer steps it once per epoch",
            tier=None if sure else Tier.WARNING,
            repair=self._repair(scheduler),
        )

    def _horizon(self, name: str, call: cst.Call | None) -> tuple[str, bool] | None:
        """The argument of a scheduler that counts batches, and whether that is sure; None if no argument does."""
        last = name.removeprefix(SCHEDULERS)
        if last == LAMBDA and call is not None:
            return self._lambda_horizon(call)
        horizons = _HORIZONS.get(last, ()) if name.startswith(SCHEDULERS) else ()
        if _HUGGING_FACE.match(name):
            horizons = _HUGGING_FACE_HORIZONS
        for keyword, position in horizons if call is not None else ():
            given = self.names.argument(call, keyword, position) if call is not None else None
            if given is None:
                continue
            words = self._words(given.value, 0)
            if words is None or (keyword == "steps_per_epoch" and call is not None and self._is_one(call, given.value)):
                return None
            if words & _SURE or "len" in words or (keyword == "steps_per_epoch" and words):
                return keyword, True
            telling = [word for word in words if _SPELLED.search(word) and not word.endswith(keyword)]
            if telling and not any("epoch" in word for word in words):
                return keyword, False  # `total_steps` by itself is the argument's own name: the scheduler's steps
        return None

    def _is_one(self, call: cst.Call, steps: cst.BaseExpression) -> bool:
        """Whether the `steps_per_epoch` of a schedule are 1, as they are written or where it is rehearsed."""
        made = [event.schedule.arguments.get("steps_per_epoch") for _, _, event in self.happened(call, ScheduleMade)]
        known = [each.default if isinstance(each, Unknown) else each for each in made]
        return self.names.constant(steps) == 1 or (bool(known) and all(is_constant(each, 1) for each in known))

    def _lambda_horizon(self, call: cst.Call) -> tuple[str, bool] | None:
        """As `_horizon`, for a function of this file whose count is measured by what surely counts batches."""
        found = [self._words(each, 0) for each in measures(self.facts, call)]
        words = set().union(*(each or () for each in found))
        return ("lr_lambda", True) if words & {*_SURE, "len"} and None not in found else None

    def _words(self, expression: cst.BaseExpression, depth: int) -> set[str] | None:
        """The names an expression is made of; None where a division by batches may make it a number of epochs."""
        found: set[str] = set()
        for each in self.tree.within(expression, cst.BinaryOperation):
            if isinstance(each.operator, (cst.Divide, cst.FloorDivide)):
                below = self._words(each.right, depth + 1) or set()
                if below & _SURE or "len" in below or any("step" in word or "epoch" in word for word in below):
                    return None
        for name in self.tree.within(expression, cst.Name):
            given = handed(self.facts, name) if depth < _DEPTH else []
            for value in given:
                inner = self._words(value, depth + 1)
                if inner is None:
                    return None
                found |= inner
            if (name.value != "len" or self._is_length_of_data(name)) and not (given and name.value in _SURE):
                found.add(name.value)
            bound = self.facts.reaching.bindings(name) if depth < _DEPTH else []
            if len(bound) == 1 and bound[0].kind is Kind.ASSIGN and bound[0].value is not None and not bound[0].path:
                inner = self._words(bound[0].value, depth + 1)
                if inner is None:
                    return None
                found |= inner
        return found

    def _is_length_of_data(self, name: cst.Name) -> bool:
        call = self.tree.parent(name)
        return isinstance(call, cst.Call) and bool(re.search(r"loader|data|batches", self.code.text_of(call)))

    def _repair(self, scheduler: Scheduler) -> Repair | None:
        if scheduler.config is None:
            draft = wrap(self.code, scheduler.written, '{"scheduler": ', ', "interval": "step"}')
        elif "interval" not in scheduler.config.values and isinstance(scheduler.config.node, cst.Dict):
            draft = insert_entry(self.code, scheduler.config.node, '"interval": "step"')
        else:
            return None
        return Repair("step the scheduler after each batch", draft, Applicability.UNSAFE)

    def clears(self, entry: Entry) -> Iterator[Site]:
        if not any(self.rehearse(entry)) and all(
            _is_understood(each.schedule.length) for event in entry.of(Configured) for each in event.schedules
        ):
            yield from configured_at(entry)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        stepped = {event.schedule for event in entry.of(ScheduleStepped) if not event.implicit}
        lengths = loader_lengths(entry)
        for event in entry.of(Configured):
            for each in event.schedules if event.automatic and not self._is_stepped_by_hand(event) else ():
                if each.schedule in stepped:
                    continue
                schedule, beside = each.schedule, each.beside
                misplaced = beside is not None and (beside.more or "interval" in beside.items)
                in_batches = counts_batches(schedule.length, lengths) or _fills_epochs(schedule, event.trainer)
                if each.interval == "epoch" and not misplaced and schedule.site and in_batches:
                    name, argument = schedule.name, schedule.length_name
                    message = f"`{name}` counts batches (`{argument}`), the Trainer steps it once per epoch"
                    yield Fault(schedule.site, message)

    @staticmethod
    def _is_stepped_by_hand(event: Configured) -> bool:
        """Whether the module has a say in when schedules step."""
        module = event.module.cls
        return not isinstance(module, Class) or isinstance(module.find("lr_scheduler_step"), Function)


def _fills_epochs(schedule: Schedule, trainer: Instance) -> bool:
    """Whether a schedule has a known number of steps in each epoch, above 1, and more in all than the Trainer has epochs."""
    steps, length, epochs = (
        schedule.arguments.get("steps_per_epoch"),
        schedule.length,
        trainer.arguments.get("max_epochs"),
    )
    if schedule.length_name != "steps_per_epoch" or not (_is_number(steps) and _is_number(length)):
        return False
    return steps.value > 1 and not (_is_number(epochs) and epochs.value >= length.value)


def _is_number(value: Value | None) -> TypeGuard[Constant]:
    return isinstance(value, Constant) and isinstance(value.value, (int, float))


def _is_understood(length: Value | None) -> bool:
    """Whether a number is a constant, or made of what the Trainer counts."""
    factors = dict(length.factors or {("unknown",): 1}) if isinstance(length, Unknown) else {}
    return isinstance(length, (Constant, Unknown)) and all(_is_counted(each) for each in factors)


def _is_counted(factor: Hashable) -> bool:
    return isinstance(factor, tuple) and factor[:1] in {("trainer",), ("length",)}
