from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, CalledUnknown, Cleared, Stepped
from lightlint.finding import Applicability
from lightlint.fixes.drafts.moves import move_before
from lightlint.values.training import Instance, Tensor, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class ZeroGradBeforeStep(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients that are cleared behind every backward pass and ahead of the step that was to use them, on all paths."""
        paths = [path for path in entry.paths if path.of(Stepped)]
        lost = [{fault.site: fault for fault in _lost(path, turned=entry.turned)} for path in paths]
        used = {
            event.site
            for path, faults in zip(paths, lost, strict=True)
            for event in path.events
            if event.site not in faults
        }
        for site, fault in ((site, fault) for faults in lost for site, fault in faults.items()) if all(lost) else ():
            if site not in used:
                yield fault

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        """The call that clears ahead of the backward pass whose gradients it throws away."""
        statement = self.tree.statement(node)
        backward = self.node_of(fault.also[0]) if fault.also else None
        if not isinstance(statement, cst.Expr) or backward is None:
            return None
        draft = move_before(self.code, statement, self.tree.statement(backward))
        return Repair("clear the gradients before the backward pass", draft, Applicability.UNSAFE)


_CLEARED = "clears the gradients between the backward pass and the step, which then changes nothing"
_EARLY = "steps on gradients that were cleared, ahead of the backward pass: it changes nothing"


@dataclass
class _Gradient:
    """What a backward pass added, and where it was cleared before a step used it."""

    added: Backward | None
    cleared: Cleared | None = None


def _lost(path: Path, *, turned: bool) -> Iterator[Fault]:
    """Where gradients were cleared that no step had used, for optimizers that never step on any; `turned`: each test was tried
    both ways, so that what stands behind one that may go the other way is no chance."""
    state: dict[Tensor, _Gradient] = {}
    useful: set[Instance] = set()
    idle: list[tuple[Stepped, _Gradient]] = []
    backwards = path.of(Backward)
    for event in path.events:
        if isinstance(event, Backward):  # of an unknown: perhaps all
            state.update({each: _Gradient(event) for each in [*(event.parameters or state), *event.perhaps]})
        elif isinstance(event, CalledUnknown):  # which may have run a backward pass
            tensors = [each for value in event.values for each in tensors_in(value)]
            state.update({parameter: _Gradient(None) for each in tensors for parameter in each.parameters})
        elif isinstance(event, Cleared) and not event.implicit:
            for each in event.parameters:
                if each in state and state[each].cleared is None:
                    state[each].cleared = event
        elif isinstance(event, Stepped):
            held = [each for each in event.parameters if each in state]
            used = any(state[each].cleared is None or each.gradient_touched or each.escaped for each in held)
            if used or event.optimizer.escaped:
                useful.add(event.optimizer)
            elif held:
                idle.append((event, state[held[0]]))
            for each in dict.fromkeys(held):  # a parameter may stand in several groups
                if state[each].cleared is None:
                    del state[each]
    for step, gradient in idle:
        cleared = gradient.cleared
        idle_for_good = step.optimizer not in useful and gradient.added is not None
        if (
            idle_for_good
            and cleared is not None
            and not _is_chosen(cleared, step)
            and (turned or _is_due(cleared, step))
        ):
            yield _fault(step, cleared, gradient.added, backwards)


def _is_due(cleared: Cleared, step: Stepped) -> bool:
    """Whether no test of which nothing is known stands before what clears alone, as one for gradients that are not finite."""
    shared = {each.site for each in step.where.conditions}
    return all(each.known or each.site in shared for each in cleared.where.conditions)


def _is_chosen(cleared: Cleared, step: Stepped) -> bool:
    """Whether a loop that the step is not in, as one over parameters, clears behind a test of which nothing is known, as one on
    their names. What is asked of many comes out one way for all of them here."""
    loops, shared = {turn.loop for turn in step.where.turns}, {each.site for each in step.where.conditions}
    inner = any(turn.loop not in loops for turn in cleared.where.turns)
    return inner and any(not each.known and each.site not in shared for each in cleared.where.conditions)


def _fault(step: Stepped, cleared: Cleared, added: Backward | None, backwards: Sequence[Backward]) -> Fault:
    """Told of the step where the turn's backward pass comes behind it, and its forward pass ahead of it; else of the call
    that clears."""
    late = next((each for each in backwards if each.time > step.time and each.where.same_turn(step.where)), None)
    computed = late is not None and any(cleared.time < graph.made < step.time for graph in late.graph)
    if computed:
        return Fault.at(step, _EARLY)
    same_turn = added is not None and added.where.same_turn(cleared.where)
    return Fault.at(cleared, _CLEARED, *([added.site] if added is not None and same_turn else []))
