from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Forward, ModeSet, Stepped
from lightlint.engine.frames import Condition
from lightlint.facts.loops import LoopKind
from lightlint.facts.tree import Loop
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import insert_before
from lightlint.values.core import Site
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class TrainModeNotRestored(Check):
    def visit_Call(self, call: cst.Call) -> None:
        modes = self.facts.modes
        loops = self.tree.loops(call)
        left = sorted(modes.left_in_eval(call) - {""}) if loops else []
        if not left or modes.may_train(call) or self._is_last(call, loops[0]):
            return
        for key in left:
            for loop in loops:
                trained = self._trained_again(call, key, loop)
                if trained is not None:
                    self._report(call, key, loop, trained)
                    return

    def _report(self, call: cst.Call, key: str, loop: Loop, trained: cst.Call) -> None:
        acts = self.facts.modes.acts_by_mode(self._module(call, key))
        if acts is False:
            return
        unit = "epoch" if self.loops.kind(loop) is LoopKind.EPOCH else "iteration"
        how = "" if self.facts.modes.is_eval(call) else "this call leaves it there and "
        first = loop.body.body[0] if isinstance(loop.body, cst.IndentedBlock) else None
        draft = insert_before(self.code, first, f"{key}.train()") if first is not None else None
        self.report(
            call,
            f"`{key}` is trained in eval mode from here on: {how}no `train()` comes before the next {unit}",
            tier=Tier.ERROR if acts else None,
            repair=Repair(f"call `{key}.train()` in each {unit}", draft, Applicability.UNSAFE),
        )

    def _trained_again(self, call: cst.Call, key: str, loop: Loop) -> cst.Call | None:
        """A call by which a later iteration trains a module that `call` has left in eval mode for an evaluation."""
        flow, modes = self.facts.flow(self.tree.owner(call)), self.facts.modes
        calls = self.tree.own(loop.body, cst.Call)
        back = [each for each in calls if modes.may_train(each) or self._may_train_out_of_sight(each, key)]
        back += [each for each in calls if each is not call and key in modes.left_in_eval(each)]
        recorded = [each for each in calls if key in modes.forwards(each, modes.records)]
        backwards = self.facts.steps.runs(loop.body, self.loops.is_backward)
        trained = [
            each
            for each in recorded
            if each not in back
            and (each in backwards or flow.reaches_in_same_iteration(loop, each, backwards, recorded))
        ]
        if not trained or not flow.reaches_in_later_iteration(loop, call, trained, avoiding=back):
            return None
        return trained[0] if self._evaluates(call, key, loop, trained) and self._is_meant_to_train(key, call) else None

    def _evaluates(self, call: cst.Call, key: str, loop: Loop, trained: list[cst.Call]) -> bool:
        """Whether the module is run in the mode that `call` puts it in, before it is trained on."""
        modes = self.facts.modes
        if not modes.is_eval(call):
            return call not in trained and key in modes.forwards(call, modes.anywhere)
        flow = self.facts.flow(self.tree.owner(call))
        others = [each for each in self.tree.own(loop.body, cst.Call) if each not in trained]
        used = [each for each in others if key in modes.forwards(each, modes.anywhere)]
        return flow.reaches_in_same_iteration(loop, call, used, avoiding=trained)

    def _is_meant_to_train(self, key: str, call: cst.Call) -> bool:
        """Whether the file puts the module in training mode elsewhere, or gives its parameters to an optimizer."""
        last = key.rpartition(".")[2]
        for each in self.tree.all(cst.Call):
            receiver = self.names.key(each.func.value) if isinstance(each.func, cst.Attribute) else ""
            if receiver.rpartition(".")[2] != last:
                continue
            method = self.names.method(each)
            if method == "train" and not self.facts.modes.is_eval(each):
                return True
            above = self.tree.parent(self.tree.parent(each) or each)
            if method == "parameters" and self.classes.name_is_a(self.names.call(above), "torch.optim.Optimizer"):
                return True
        return False

    def _may_train_out_of_sight(self, call: cst.Call, key: str) -> bool:
        """Whether code out of sight is given the module, and may set its mode."""
        if self.facts.steps.callee(call) is not None or self.facts.modes.is_eval(call):
            return False
        name = self.names.of(call.func) or ""
        if name.startswith(("torch.", "builtins.", "copy.", "os.", "math.", "numpy.")):
            return False
        holders = {key, key.rpartition(".")[0]} - {""}
        return any(self.names.key(arg.value) in holders for arg in call.args)

    def _is_last(self, call: cst.Call, loop: Loop) -> bool:
        """Whether a test of one iteration only may decide about the call."""
        tests = [each for each in self.facts.conditions(call) if self.tree.contains(loop.body, each[0])]
        return any(self._may_hold_once(*each) for each in tests)

    def _may_hold_once(self, test: cst.BaseExpression, outcome: bool) -> bool:
        """Whether a test may come out so in one iteration only: `epoch == last`, or `epoch != last` that failed."""
        if any(isinstance(each.operator, cst.Modulo) for each in self.tree.within(test, cst.BinaryOperation)):
            return False
        once = cst.Equal if outcome else cst.NotEqual
        return any(isinstance(each.operator, once) for each in self.tree.within(test, cst.ComparisonTarget))

    def _module(self, call: cst.Call, key: str) -> cst.BaseExpression | None:
        """An expression of the function that names the module."""
        owner = self.tree.owner(call)
        named = (*self.tree.own(owner, cst.Name), *self.tree.own(owner, cst.Attribute))
        return next((each for each in named if self.names.key(each) == key), None)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules that were trained in train mode and later, at the same place, in eval mode."""
        for path in entry.paths:
            stepped = {each for event in path.of(Stepped) for each in event.parameters}
            trained: set[tuple[Module, Site]] = set()
            left: dict[Module, ModeSet] = {}
            for event in path.events:
                if isinstance(event, ModeSet):
                    for module in event.module.modules():
                        if event.training:
                            left.pop(module, None)
                        elif not any(map(_holds_once, event.where.conditions)):
                            left[module] = event
                elif isinstance(event, Forward) and event.grad and event.by_mode and not event.where.phase:
                    used = any(graph.consumed for graph in event.graph) and stepped & set(event.parameters)
                    if not used or event.module.escaped:
                        continue
                    if event.training:
                        trained.add((event.module, event.site))
                    elif (event.module, event.site) in trained and event.module in left:
                        message = (
                            "the model is trained in eval mode from here on: no `train()` comes before the next epoch"
                        )
                        yield Fault.at(left[event.module], message, event.site)


def _holds_once(condition: Condition) -> bool:
    """Whether a test of a counter may hold in one turn alone, which can be the last: `epoch == epochs - 1`."""
    match condition.key:
        case ("==" | "!=" as symbol, left, right):
            counts = bool({"count", "index"} & condition.traits) and "%" not in f"{left}{right}"
            return counts and condition.outcome is (symbol == "==")
    return False
