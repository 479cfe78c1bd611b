from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Cleared, Stepped
from lightlint.explore.queries import in_batch, once_in_several
from lightlint.facts.accumulation import Window
from lightlint.facts.bindings import Kind
from lightlint.facts.classes import MODULE
from lightlint.facts.hooks import TRAINING_STEP, Hook, Owner
from lightlint.facts.tree import Loop
from lightlint.facts.updates import Update
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class AccumulatedGradientsCleared(Check):
    def visit_Call(self, call: cst.Call) -> None:
        update = self.facts.updates.update(call)
        if update is None:
            return
        loops = self.tree.loops(call)
        loop = loops[0] if loops else None
        size = self._size(call, loop)
        backward = self._backward(call, loop) if size is not None and self.names.constant(size) != 1 else None
        if (
            size is None
            or backward is None
            or not self._is_alone(update, loop)
            or self.facts.updates.handles_gradients(self.tree.owner(call))
        ):
            return
        clear = self._clear_each_time(update, backward, loop)
        if clear is not None:
            name, number = self.code.text_of(update.optimizer), self.code.text_of(size)
            self.report(
                clear,
                f"clears the gradients in every iteration, and `{name}` steps once in `{number}`: the others are thrown away",
            )

    def _size(self, step: cst.Call, loop: Loop | None) -> cst.BaseExpression | None:
        """The number of batches that a step waits for."""
        window = self.facts.accumulation.loose_window(step)
        if window is None:
            return self.facts.accumulation.counted(step)
        return window.size if self._counts_batches(window, step, loop) else None

    def _counts_batches(self, window: Window, step: cst.Call, loop: Loop | None) -> bool:
        """Whether a window counts what repeats: iterations of the loop, or the calls of a `training_step`."""
        counter, place = window.counter, loop or self.tree.function(step)
        if place is None or (loop is None and not self._is_manual(step)):
            return False
        if isinstance(counter, cst.Attribute):
            key = self.names.key(counter)
            return any(self.names.key(each.target) == key for each in self.tree.own(place, cst.AugAssign))
        found = self.names.bindings.lookup(counter) if isinstance(counter, cst.Name) else []
        if loop is not None:
            return any(self.tree.contains(loop, each.site) for each in found)
        third = place.params.params[2:3] if isinstance(place, cst.FunctionDef) else ()
        return [each.site for each in found] == list(third) and found[0].kind is Kind.PARAMETER

    def _is_manual(self, step: cst.Call) -> bool:
        """Whether a call stands in the `training_step` of a module that steps by hand."""
        function = self.tree.function(step)
        node = self.tree.class_of(function) if function is not None else None
        if function is None or node is None or self.hooks.of(function) != Hook(Owner.MODULE, TRAINING_STEP):
            return False
        by_hand = self.classes.constant(node, "automatic_optimization", True) is False
        return by_hand and self.classes.is_a(node, MODULE)

    def _backward(self, step: cst.Call, loop: Loop | None) -> cst.Call | None:
        """The one backward pass that runs for every batch, whether or not the step follows."""
        owner = self.tree.owner(step)
        backwards = [
            each for each in self.facts.updates.backwards(owner) if loop is None or self.tree.contains(loop, each)
        ]
        if len(backwards) != 1 or self.tree.loops(backwards[0])[:1] != self.tree.loops(step)[:1]:
            return None
        of_step = self.facts.conditions(step)
        accumulation = self.facts.accumulation
        waits = (accumulation.loose_window(backwards[0]) or accumulation.counted(backwards[0])) is not None
        return None if waits or not set(self.facts.conditions(backwards[0])) < set(of_step) else backwards[0]

    def _is_alone(self, update: Update, loop: Loop | None) -> bool:
        """Whether nothing else uses the gradients: all steps wait as this one does, and nobody else decides when to clear."""
        owner = self.tree.owner(update.call)
        place = loop.body if loop is not None else owner
        stepping = self.facts.steps.runs(place, self.facts.accumulation.is_step)
        tests = set(self.facts.conditions(update.call))
        together = all(set(self.facts.conditions(each)) == tests for each in stepping)
        return together and not any(self.names.method(each) == "accumulate" for each in self.tree.own(owner, cst.Call))

    def _clear_each_time(self, update: Update, backward: cst.Call, loop: Loop | None) -> cst.Call | None:
        """A `zero_grad()` of the optimizer, where each iteration comes through one between its gradient and a later step."""
        owner, step = self.tree.owner(update.call), update.call
        clears, flow = self.facts.updates.clears_of(owner, update.optimizer), self.facts.flow(owner)
        if loop is not None:
            clears = [each for each in clears if self.tree.contains(loop, each)]
            if not flow.reaches_in_same_iteration(loop, backward, [step], avoiding=clears):
                return None
            if not flow.reaches_in_later_iteration(loop, backward, [step], avoiding=self._ends(loop)):
                return None  # the loop is left before it comes round
            kept = flow.reaches_in_later_iteration(loop, backward, [step], avoiding=clears)
        else:
            if not flow.reaches(backward, [step], avoiding=clears):
                return None
            kept = not flow.always_before(step, clears) and not flow.always_after(backward, clears)
        return clears[0] if clears and not kept else None

    def _ends(self, loop: Loop) -> list[cst.Call]:
        """The calls in a loop of functions of this file that never return."""
        calls = [(each, self.hooks.callee(each)) for each in self.tree.own(loop.body, cst.Call)]
        flows = [(call, self.facts.flow(callee)) for call, callee in calls if callee is not None]
        return [call for call, flow in flows if not flow.reaches(flow.start, [flow.end])]

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients that are cleared unused before a step, taken once in so many batches, uses those of the same pass."""
        message = "clears the gradients in every iteration, and the optimizer steps once in several: the others are thrown away"
        for path in entry.paths:
            yield from (Fault.at(event, message) for event in _thrown_away(path))


def _thrown_away(path: Path) -> Iterator[Cleared]:
    added: dict[Tensor, list[Backward]] = {}
    lost: dict[Tensor, tuple[Cleared, list[Backward]]] = {}
    for event in path.events:
        if isinstance(event, Backward):
            for each in event.parameters:
                added.setdefault(each, []).append(event)
        elif isinstance(event, Cleared):
            for each in event.parameters:
                passes = added.pop(each, None)
                if passes and in_batch(event.where) and not event.implicit and not event.where.depends_on("periodic"):
                    lost[each] = event, passes
        elif isinstance(event, Stepped):
            waits = once_in_several(event.where) and in_batch(event.where) and _is_plain(event.optimizer)
            for each in event.parameters if waits else []:
                cleared, passes = lost.get(each, (None, []))
                if cleared is not None and _are_alike(passes, added.get(each, []), event) and not each.gradient_touched:
                    yield cleared
                    break
            for each in event.parameters:
                lost.pop(each, None)
                added.pop(each, None)


def _is_plain(optimizer: Instance) -> bool:
    """Whether no code out of sight steps or clears it, as an Accelerator does."""
    manager = optimizer.arguments.get("#managed")
    return not optimizer.escaped and not (isinstance(manager, Instance) and manager.kind == "accelerator")


def _are_alike(lost: list[Backward], used: list[Backward], step: Stepped) -> bool:
    """Whether the passes that were thrown away are those of the step, some turns of its loop before."""
    outer = step.where.turns[:-1]
    same_loop = all(each.where.turns[: len(outer)] == outer for each in lost)
    return same_loop and {each.site for each in lost} == {each.site for each in used}
