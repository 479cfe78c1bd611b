from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, ScheduleMade, ScheduleStepped, StateLoaded
from lightlint.facts.bindings import Kind
from lightlint.facts.checkpoints import SAVE
from lightlint.finding import Tier
from lightlint.values.core import Mapping
from lightlint.values.training import Optimizer

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_SCHEDULERS = "torch.optim.lr_scheduler."
_SCALERS = {"torch.amp.GradScaler", "torch.cuda.amp.GradScaler", "torch.cpu.amp.GradScaler"}


class ResumeStateIncomplete(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) != SAVE or not call.args:
            return
        saved = self._saved(call.args[0].value)
        optimizers = {name for name in saved if self._is_loaded(name) and self._is_optimizer(name)}
        if not optimizers or self._loads_in_turn():
            return
        for name, made, optimizer in self._made():
            if self._is_loaded(name) or not self._goes_with(name, made, optimizer, optimizers):
                continue
            what = "is saved and never loaded back" if name in saved else "is not in the checkpoint"
            if name not in saved and "state_dict" in self._asked(name):
                continue
            one = sorted(optimizers)[0]
            scheduler = (self.names.call(made) or "").startswith(_SCHEDULERS)
            self.report(
                call,
                f"`{one}` is saved and loaded back, the state of `{name}` {what}",
                tier=None if scheduler else Tier.NOTE,
            )

    def _saved(self, value: cst.BaseExpression) -> set[str]:
        """The names whose `state_dict()` a checkpoint holds; empty where not all of it is in sight."""
        if isinstance(value, cst.Name):
            found = self.names.bindings.lookup(value)
            only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
            if only is None or only.value is None or self._is_extended(value):
                return set()
            value = only.value
        if isinstance(value, cst.Dict):
            if any(isinstance(each, cst.StarredDictElement) for each in value.elements):
                return set()
            parts: list[cst.BaseExpression] = [each.value for each in value.elements]
        elif (
            isinstance(value, cst.Call) and self.names.call(value) == "builtins.dict" and not self.names.has_star(value)
        ):
            parts = [arg.value for arg in value.args]
        else:
            return set()
        calls = [each for part in parts for each in self.tree.within(part, cst.Call)]
        return {self._receiver(each) for each in calls if self.names.method(each) == "state_dict"}

    def _is_extended(self, name: cst.Name) -> bool:
        """Whether more is put into a dict later."""
        sets = [each.target for each in self.tree.all(cst.AssignTarget)]
        items = any(isinstance(each, cst.Subscript) and self.names.key(each.value) == name.value for each in sets)
        return items or any(
            self.names.method(call) == "update" and self._receiver(call) == name.value
            for call in self.tree.all(cst.Call)
        )

    def _receiver(self, call: cst.Call) -> str:
        """The last word of what a method is called on: `optimizer` of `self.optimizer.step()`."""
        return self.names.key(call.func).rpartition(".")[0].rpartition(".")[2]

    def _asked(self, name: str) -> set[str]:
        return {self.names.method(call) for call in self.tree.all(cst.Call) if self._receiver(call) == name}

    def _is_loaded(self, name: str) -> bool:
        return "load_state_dict" in self._asked(name)

    def _is_optimizer(self, name: str) -> bool:
        receivers = [
            call.func.value
            for call in self.tree.all(cst.Call)
            if self._receiver(call) == name and isinstance(call.func, cst.Attribute)
        ]
        return any(self.values.is_optimizer(each) for each in receivers)

    def _loads_in_turn(self) -> bool:
        """Whether a loop, or a method by name, loads what is not spelled out."""
        loads = [call for call in self.tree.all(cst.Call) if self.names.method(call) == "load_state_dict"]
        names = [each for call in loads for each in self.tree.within(call.func, cst.Name, cst.Subscript)]
        return any(
            isinstance(each, cst.Subscript)
            or any(bound.kind is Kind.LOOP for bound in self.names.bindings.lookup(each))
            for each in names
        )

    def _made(self) -> Iterator[tuple[str, cst.Call, cst.BaseExpression | None]]:
        """The schedulers and scalers of the file under the names they are given, with a scheduler's optimizer."""
        for assign in self.tree.all(cst.Assign):
            name = self.names.key(assign.targets[0].target).rpartition(".")[2]
            made = self._maker(assign.value) if name else None
            if made is None:
                continue
            optimizer = self.names.argument(made, "optimizer", 0)
            given = optimizer.value if optimizer is not None else None
            if made is not assign.value and isinstance(given, cst.Name) and isinstance(assign.value, cst.Call):
                given = self._handed(given, assign.value)
            yield name, made, given

    def _maker(self, value: cst.BaseExpression) -> cst.Call | None:
        """The call that makes a scheduler or scaler: the value itself, or the one thing that a helper gives."""
        full = self.names.call(value) or ""
        if isinstance(value, cst.Call) and (full in _SCALERS or full.startswith(_SCHEDULERS)):
            return value
        callee = self.hooks.callee(value) if isinstance(value, cst.Call) else None
        returns = self.values.returns(callee) if callee is not None and not callee.decorators else []
        sources = self.facts.reaching.sources(returns[0]) if len(returns) == 1 and returns[0] is not None else []
        made = sources[0] if len(sources) == 1 else None
        scheduler = (self.names.call(made) or "").startswith(_SCHEDULERS)
        return made if scheduler and isinstance(made, cst.Call) else None

    def _handed(self, name: cst.Name, call: cst.Call) -> cst.BaseExpression | None:
        """What the call of a helper gives for the parameter that a name in it is."""
        found = self.facts.reaching.bindings(name)
        function = found[0].scope if len(found) == 1 and found[0].kind is Kind.PARAMETER else None
        return self.values.given(function, call, name.value) if isinstance(function, cst.FunctionDef) else None

    def _goes_with(self, key: str, made: cst.Call, optimizer: cst.BaseExpression | None, optimizers: set[str]) -> bool:
        """Whether a scheduler steps one of the optimizers and counts for itself, or a scaler scales for certain."""
        name = self.names.call(made) or ""
        if name in _SCALERS:
            enabled = self.names.argument(made, "enabled")
            return "step" in self._asked(key) and (enabled is None or self.names.constant(enabled.value) is not False)
        if optimizer is None or self.names.argument(made, "last_epoch") is not None or self.names.has_star(made):
            return False
        steps = [
            call
            for call in self.tree.all(cst.Call)
            if self._receiver(call) == key and self.names.method(call) == "step"
        ]
        told = name != f"{_SCHEDULERS}ReduceLROnPlateau" and any(call.args for call in steps)
        reads = any(each.attr.value == "last_epoch" for each in self.tree.all(cst.Attribute))
        mine = self.names.key(optimizer).rpartition(".")[2] in optimizers
        return mine and bool(steps) and not told and not reads

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Checkpoints with the state of an optimizer, which is loaded back, and none of its schedule."""
        loaded = {id(event.object): event for event in entry.of(StateLoaded)}
        for path in entry.paths:
            schedules = [event.schedule for event in path.of(ScheduleMade) if not event.schedule.escaped]
            optimizers = {id(event.object) for event in path.of(StateLoaded) if isinstance(event.object, Optimizer)}
            for save in path.of(Called):
                content = save.argument("obj", 0) if save.path == "torch.save" else None
                if not isinstance(content, Mapping) or content.more:
                    continue
                saved = {id(each.source) for each in content.items.values() if isinstance(each, Mapping)}
                for each in schedules:
                    stepped = any(event.schedule is each and not event.args for event in path.of(ScheduleStepped))
                    resumed = id(each.optimizer) in optimizers and id(each.optimizer) in saved
                    told = each.open_arguments or "last_epoch" in each.arguments
                    if resumed and stepped and not told and id(each) not in loaded and id(each) not in saved:
                        message = "the optimizer is saved and loaded back, the state of its scheduler is not in the checkpoint"
                        yield Fault.at(save, message)
