from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, Stepped, Unscaled
from lightlint.explore.queries import in_sight
from lightlint.facts.scaled_steps import left_scaled
from lightlint.facts.updates import Update
from lightlint.finding import Applicability
from lightlint.fixes.edits import drop_statement, replace
from lightlint.values.core import is_constant
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class GradScalerProtocol(Check):
    def visit_Call(self, call: cst.Call) -> None:
        skipped = self.facts.updates.scaling.left_out(call)
        if skipped is not None and isinstance(call.func, cst.Attribute) and not self._is_disabled(call.func.value):
            self.report(
                skipped,
                f"is left out in an iteration that has unscaled: the next `{self.code.text_of(call.func)}()` raises",
            )
        update = self.facts.updates.update(call)
        if update is None:
            return
        if update.scaler is None:
            self._judge_plain(update)
        elif self.values.is_scaler(update.scaler) and self._never_scales(update):
            self.report(
                call,
                f"`{self.code.text_of(update.scaler)}` scales no loss in this file: its step raises, as no gradients were scaled",
            )
        elif self.values.is_scaler(update.scaler) and self._never_updates(update):
            self.report(
                call, f"`{self.code.text_of(update.scaler)}` is never told to `update()`: its second step raises"
            )

    def _is_disabled(self, scaler: cst.BaseExpression) -> bool:
        """Whether a scaler was made to do nothing."""
        flags = [self.names.argument(each.call, "enabled") for each in self.values.origins(scaler) if each.call]
        return any(flag is not None and self.names.constant(flag.value) is False for flag in flags)

    def _judge_plain(self, update: Update) -> None:
        """A step past the scaler: beside one through it, or on gradients that were scaled."""
        facts, call = self.facts.updates, update.call
        owner = self.tree.owner(call)
        flow, key = self.facts.flow(owner), self.names.key(update.optimizer)
        backwards = facts.backwards(owner)
        same = [each for each in facts.updates(owner) if each.scaler and self.names.key(each.optimizer) == key]
        for other in same:
            met = flow.reaches(other.call, [call], avoiding=backwards) or flow.reaches(
                call, [other.call], avoiding=backwards
            )
            if key and met and self._runs_whenever(call, other.call):
                statement = self.tree.statement(call)
                plain = isinstance(statement, cst.Expr) and statement.value is call
                draft = drop_statement(self.code, statement) if plain and isinstance(statement, cst.Expr) else None
                self.report(
                    call,
                    f"steps `{self.code.text_of(update.optimizer)}` a second time, past the scaler that has stepped it on the same gradients",
                    repair=Repair("drop the call", draft, Applicability.UNSAFE),
                )
                return
        left = left_scaled(self.facts, update)
        if left is not None and not self._is_disabled(left):
            self._report_scaled(update, left)
            return
        if same or facts.handles_gradients(owner) or self._is_stepped_elsewhere():
            return
        scaled = [
            each for each in facts.own(owner) if self.loops.is_backward(each) and facts.scaler_of(each) is not None
        ]
        unscaled = [each for each in facts.own(owner) if "unscale" in self.names.method(each)]
        for backward in scaled:
            others = [each for each in backwards if each is not backward]
            if flow.reaches(backward, [call], avoiding=[*unscaled, *others]) and self._runs_whenever(call, backward):
                scaler = facts.scaler_of(backward)
                if scaler is not None:
                    self._report_scaled(update, scaler)
                return

    def _report_scaled(self, update: Update, scaler: cst.BaseExpression) -> None:
        text, optimizer = self.code.text_of(scaler), self.code.text_of(update.optimizer)
        self.report(
            update.call,
            f"steps `{optimizer}` on gradients that `{text}` has multiplied by its scale, 65536 at first",
            repair=Repair(
                "step through the scaler",
                replace(self.code, update.call, f"{text}.step({optimizer})"),
                Applicability.UNSAFE,
            ),
        )

    def _runs_whenever(self, call: cst.Call, other: cst.Call) -> bool:
        """Whether no test lets the second call run without the first."""
        theirs = {(self.code.text_of(test), outcome) for test, outcome in self.facts.conditions(other)}
        ours = {(self.code.text_of(test), outcome) for test, outcome in self.facts.conditions(call)}
        return ours <= theirs

    def _is_stepped_elsewhere(self) -> bool:
        """Whether this file steps anything through a scaler, or unscales gradients."""
        unscaling = {"get_scale", "unscale_"}
        calls = self.tree.all(cst.Call)
        updates = [self.facts.updates.update(each) for each in calls]
        return any(self.names.method(each) in unscaling for each in calls) or any(
            each is not None and each.scaler is not None for each in updates
        )

    def _is_other(self, receiver: cst.BaseExpression | None, scaler: cst.BaseExpression | None) -> bool:
        """Whether a receiver surely is another object than the scaler: each is made by calls of its own."""
        theirs = {each.call for each in self.values.origins(receiver)}
        ours = {each.call for each in self.values.origins(scaler)}
        return bool(theirs and ours) and None not in theirs | ours and not theirs & ours

    def _never_scales(self, update: Update) -> bool:
        """Whether a scaler that surely is enabled steps behind a plain backward pass of the function, and nothing scales."""
        made = [each.call for each in self.values.origins(update.scaler)]
        enabled = [self.names.argument(each, "enabled") for each in made if each is not None]
        if len(enabled) != len(made) or any(each is not None for each in enabled):
            return False
        owner = self.tree.owner(update.call)
        plain = [each for each in self.facts.updates.own(owner) if self.names.method(each) == "backward"]
        reaches = self.facts.flow(owner).reaches
        words = {each.attr.value for each in self.tree.all(cst.Attribute)}
        return "scale" not in words and any(reaches(each, [update.call]) for each in plain)

    def _never_updates(self, update: Update) -> bool:
        """Whether nothing can update the scaler, which the file makes: no `update()` at all, and it is handed to nobody."""
        if any(each.call is None for each in self.values.origins(update.scaler)):
            return False
        repeated = bool(self.tree.loops(update.call)) or self.loops.per_batch(update.call) is not None
        for call in self.tree.all(cst.Call):
            receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
            updates = self.names.method(call) == "update" and receiver is not None
            if updates and self._is_other(receiver, update.scaler):
                continue
            if updates and (self.values.is_scaler(receiver) or not call.args):
                return False
            if self.hooks.callee(call) is None and any(self.values.is_scaler(arg.value) for arg in call.args):
                return False
        return repeated

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Steps past a scaler: behind its own on the same gradients, or on gradients that it has scaled."""
        for path in entry.paths:
            scaled: dict[Tensor, Backward] = {}
            stepped: dict[Instance, Stepped] = {}
            for event in path.events:
                if isinstance(event, Backward):
                    stepped.clear()
                    for each in event.parameters:
                        scaled.pop(each, None)
                        if event.loss is not None and event.loss.unscaled_loss is not None:
                            scaled[each] = event
                elif isinstance(event, Unscaled):
                    scaled.clear()
                elif isinstance(event, Stepped) and event.via == "scaler" and event.scaler is not None:
                    scaled.clear()
                    if _is_on(event.scaler):
                        stepped[event.optimizer] = event
                elif isinstance(event, Stepped) and event.via == "direct" and in_sight([event.optimizer]):
                    if event.optimizer in stepped:
                        message = "steps the optimizer a second time, past the scaler that has stepped it on the same gradients"
                        yield Fault.at(event, message)
                    elif any(_is_scaled(scaled[each]) for each in event.parameters if each in scaled):
                        message = "steps the optimizer on gradients that the scaler has multiplied by its scale, 65536 at first"
                        yield Fault.at(event, message)


def _is_on(scaler: Instance) -> bool:
    enabled = scaler.arguments.get("enabled")
    return not scaler.escaped and not scaler.open_arguments and (enabled is None or is_constant(enabled, True))


def _is_scaled(event: Backward) -> bool:
    scaler = event.loss.scaler if event.loss is not None else None
    return isinstance(scaler, Instance) and _is_on(scaler) and not any(p.gradient_touched for p in event.parameters)
