from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Cleared, Stepped
from lightlint.explore.queries import in_sight, sure
from lightlint.facts.severed import Severed
from lightlint.facts.updates import Update
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site


class DetachedGeneratorLoss(Check):
    def visit_Call(self, call: cst.Call) -> None:
        update = self.facts.updates.update(call)
        module = self._module(update.optimizer) if update is not None else None
        backward = self._backward(update) if update is not None and module is not None else None
        loss = self._loss(backward) if backward is not None else None
        if update is None or module is None or backward is None or loss is None or self._shares_weights():
            return
        made = self.values.constructor(module)
        cut = Severed(self.facts, made.call).cut(loss) if made is not None and made.call is not None else None
        if cut is not None:
            text, name = self.code.text_of(cut), self.code.text_of(update.optimizer)
            self.report(
                backward,
                f"this loss hangs on `{self.code.text_of(module)}` through `{text}.detach()` alone: `{name}` gets no gradient to step by",
            )

    def _module(self, optimizer: cst.BaseExpression) -> cst.BaseExpression | None:
        """`net` of the one optimizer that was made of `net.parameters()`, where a call in sight made `net`."""
        origin = self.values.constructor(optimizer)
        params = (
            self.names.argument(origin.call, "params", 0) if origin is not None and origin.call is not None else None
        )
        value = params.value if params is not None else None
        if not isinstance(value, cst.Call) or self.names.method(value) != "parameters" or value.args:
            return None
        module = value.func.value if isinstance(value.func, cst.Attribute) else None
        return module if module is not None and self.values.is_module(module) else None

    def _backward(self, update: Update) -> cst.Call | None:
        """The one backward pass whose gradient a step can see, where nothing else on the way may add to it."""
        facts, step = self.facts.updates, update.call
        owner = self.tree.owner(step)
        clears, flow = facts.clears_of(owner, update.optimizer), self.facts.flow(owner)
        if not clears or facts.handles_gradients(owner):
            return None
        seen = [each for each in facts.own(owner) if flow.reaches(each, [step], avoiding=clears)]
        backwards = [each for each in facts.backwards(owner) if each in seen]
        strange = [each for each in seen if each not in backwards and not self._is_known(each)]
        return backwards[0] if len(backwards) == 1 and not strange else None

    def _is_known(self, call: cst.Call) -> bool:
        """Whether a call is none of a function out of sight, which might run a backward pass of its own."""
        if isinstance(call.func, cst.Attribute):
            return True
        library = (self.names.of(call.func) or "").startswith(("torch.", "builtins."))
        return library or self.facts.steps.callee(call) is not None or bool(self.values.origins(call.func))

    def _loss(self, backward: cst.Call) -> cst.BaseExpression | None:
        """What a backward pass starts from."""
        if not self.loops.is_backward(backward) or not isinstance(backward.func, cst.Attribute):
            return None
        scaled = backward.func.value
        if self.facts.updates.scaler_of(backward) is not None and isinstance(scaled, cst.Call) and scaled.args:
            return scaled.args[0].value
        first = backward.args[0] if backward.args else None
        if first is not None and first.keyword is None:
            return first.value  # `self.manual_backward(loss)`, `fabric.backward(loss)`
        return scaled if not backward.args else None

    def _shares_weights(self) -> bool:
        """Whether the file puts one module or its parts into another: `critic.embed = generator.embed`."""
        targets = [(target.target, assign.value) for assign in self.tree.all(cst.Assign) for target in assign.targets]
        return any(
            isinstance(target, cst.Attribute)
            and isinstance(value, (cst.Attribute, cst.Name))
            and not self.classes.is_self(target.value)
            and self.values.is_module(target.value)
            for target, value in targets
        )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes behind which an optimizer steps that got no gradient, since what its module gave was detached, on each path."""
        faults = {event for path in entry.paths for event in _cut_off(path)}
        message = "this loss hangs on the module that is stepped next through `detach()` alone: its optimizer gets no gradient"
        yield from (Fault.at(event, message) for event in sure(entry, Backward, lambda each: each in faults))

    def clears(self, entry: Entry) -> Iterator[Site]:
        """Passes that reach what is stepped next."""
        for path in entry.paths:
            last: Backward | None = None
            for event in path.events:
                if isinstance(event, Backward):
                    last = event
                elif isinstance(event, Stepped):
                    if last is not None and set(event.parameters) & set(last.parameters):
                        yield from last.where.places
                    last = None


def _cut_off(path: Path) -> Iterator[Backward]:
    held: set[Tensor] = set()
    last: Backward | None = None
    for event in path.events:
        if isinstance(event, Backward):
            held |= set(event.parameters)
            last = event
        elif isinstance(event, Cleared):
            held -= set(event.parameters)
        elif isinstance(event, Stepped):
            if last is not None and not held & set(event.parameters) and _is_cut_off(last, event):
                yield last
            last = None


def _is_cut_off(event: Backward, step: Stepped) -> bool:
    """Whether the loss of a pass that trains something hangs on the parameters of a step through `detach()`."""
    own, loss = set(step.parameters), event.loss
    if loss is None or not any(each.parameter for each in event.parameters):
        return False
    cut = any(cut.how == "detach" and cut.parameters & own for cut in loss.cuts)
    return cut and in_sight([loss, step.optimizer, *_owners(own)]) and not any(each.gradient_touched for each in own)


def _owners(parameters: set[Tensor]) -> list[Module]:
    return [each.owner for each in parameters if each.owner is not None]
