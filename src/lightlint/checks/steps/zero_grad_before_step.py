from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, CalledUnknown, Cleared, Stepped
from lightlint.facts.updates import Update
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft
from lightlint.fixes.moves import move_before
from lightlint.values.core import Site
from lightlint.values.training import Instance, Tensor, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class ZeroGradBeforeStep(Check):
    def visit_Call(self, call: cst.Call) -> None:
        update = self.facts.updates.update(call)
        clear = self._clear_between(update) if update is not None else None
        if update is None or clear is None:
            return
        name = self.code.text_of(update.optimizer)
        if self._backward_behind(update) is not None and self._computes_between(clear, call):
            self.report(
                call, f"steps `{name}` on gradients that were cleared, ahead of the backward pass: it changes nothing"
            )
            return
        self.report(
            clear,
            f"clears the gradients between the backward pass and the step of `{name}`, which then changes nothing",
            repair=Repair("clear the gradients before the backward pass", self._draft(clear), Applicability.UNSAFE),
        )

    def _clear_between(self, update: Update) -> cst.Call | None:
        """The `zero_grad()` that every way from a backward pass to a step goes through."""
        facts, step = self.facts.updates, update.call
        owner = self.tree.owner(step)
        clears, backwards = facts.clears_of(owner, update.optimizer), facts.backwards(owner)
        if not clears or not backwards or facts.handles_gradients(owner):
            return None
        flow = self.facts.flow(owner)
        if any(flow.reaches(each, [step], avoiding=clears) for each in backwards):
            return None
        between = [each for each in clears if flow.reaches(each, [step], avoiding=[*backwards, *clears])]
        met = [each for each in between if any(flow.reaches(back, [each], avoiding=[step]) for back in backwards)]
        for each in met:
            on_the_way = [
                call
                for call in facts.own(owner)
                if flow.reaches(each, [call], avoiding=[step]) and flow.reaches(call, [step], avoiding=clears)
            ]
            if all(facts.is_quiet(call) for call in on_the_way):
                return each
        return None

    def _backward_behind(self, update: Update) -> cst.Call | None:
        """The one backward pass of a loop, where it stands behind the step."""
        owner, loops = self.tree.owner(update.call), self.tree.loops(update.call)
        backwards = self.facts.updates.backwards(owner)
        behind = [each for each in backwards if self.tree.order(each) > self.tree.order(update.call)]
        return behind[0] if len(behind) == len(backwards) == 1 and loops[:1] == self.tree.loops(behind[0])[:1] else None

    def _computes_between(self, clear: cst.Call, step: cst.Call) -> bool:
        """Whether calls stand between two others."""
        first, last = self.tree.order(clear), self.tree.order(step)
        return any(first < self.tree.order(each) < last for each in self.tree.own(self.tree.owner(step), cst.Call))

    def _draft(self, clear: cst.Call) -> Draft | None:
        statement = self.tree.statement(clear)
        owner = self.tree.owner(clear)
        backwards = [each for each in self.facts.updates.own(owner) if self.loops.is_backward(each)]
        if len(backwards) != 1 or not isinstance(statement, cst.Expr):
            return None
        if self.tree.order(backwards[0]) > self.tree.order(clear):
            return None  # the step stands in front of the backward pass: it is the step that has to move
        return move_before(self.code, statement, self.tree.statement(backwards[0]))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients that are cleared behind every backward pass and ahead of the step that was to use them, on all paths."""
        lost = [dict(_lost(path)) for path in entry.paths if path.of(Stepped)]
        for site in lost[0] if lost else {}:
            if all(site in each for each in lost):
                yield Fault(
                    site, "clears the gradients between the backward pass and the step, which then changes nothing"
                )


def _lost(path: Path) -> Iterator[tuple[Site, bool]]:
    """Where gradients were cleared that no step had used, for optimizers that never step on any."""
    state: dict[Tensor, Site | None] = {}
    useful: set[Instance] = set()
    idle: list[Stepped] = []
    where: dict[Instance, Site] = {}
    for event in path.events:
        if isinstance(event, Backward):
            state.update(dict.fromkeys([*(event.parameters or state), *event.perhaps]))  # of an unknown: perhaps all
        elif isinstance(event, CalledUnknown):  # which may have run a backward pass
            tensors = [each for value in event.values for each in tensors_in(value)]
            state.update(dict.fromkeys(parameter for each in tensors for parameter in each.parameters))
        elif isinstance(event, Cleared) and not event.implicit:
            for each in event.parameters:
                if each in state and state[each] is None:
                    state[each] = event.site
        elif isinstance(event, Stepped):
            held = [each for each in event.parameters if each in state]
            if (
                any(state[each] is None or each.gradient_touched or each.escaped for each in held)
                or event.optimizer.escaped
            ):
                useful.add(event.optimizer)
            elif held:
                idle.append(event)
                where[event.optimizer] = state[held[0]] or event.site
            for each in held:
                if state[each] is None:
                    del state[each]
    yield from ((where[event.optimizer], True) for event in idle if event.optimizer not in useful)
