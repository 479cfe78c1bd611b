from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, CalledUnknown, Cleared, Clipped, Event, Stepped
from lightlint.explore.questions.queries import beside
from lightlint.finding import Applicability, Tier
from lightlint.fixes.drafts.moves import move_before
from lightlint.values.core import number_of
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_HIGH = 100  # a norm above which nobody clips: the call is there for what it returns


class ClipGradWrongPlace(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients that are clipped where there are none, or where the step has used them."""
        for path in entry.paths:
            found = {
                event.site: (event, step, is_late) for event, step, is_late in _misplaced(path)
            }  # the last of each
            for event, step, is_late in found.values():
                if any(each.gradient_read > event.time for each in event.parameters):
                    continue  # which is what it may be for
                what = "that the step has used already" if is_late else "that no backward pass has made yet"
                site = beside(event, step)
                node = self.node_of(event.site)
                kept = isinstance(node, cst.Call) and not isinstance(self.tree.parent(node), (cst.Expr, cst.Return))
                yield Fault(
                    site,
                    f"clips gradients {what}, so it changes nothing",
                    Tier.WARNING if kept else None,
                    also=(beside(step, event),),
                )

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        """The call ahead of the step."""
        statement = self.tree.statement(node)
        step = self.node_of(fault.also[0])
        if not isinstance(node, cst.Call) or not isinstance(statement, cst.Expr) or step is None:
            return None
        draft = move_before(self.code, statement, self.tree.statement(step))
        return Repair("clip before the step", draft, Applicability.UNSAFE)


def _misplaced(path: Path) -> Iterator[tuple[Clipped, Stepped, bool]]:
    """The calls that clip between a step and the next pass, with the step that is before or behind them: whether what they
    find has been used, or cleared already."""
    state: dict[Tensor, Stepped | str] = {}
    cleared: dict[Tensor, Cleared] = {}
    early: list[Clipped] = []
    emptied = {each for event in path.of(Cleared) for each in event.parameters}
    waiting: list[Clipped] = []
    for event in path.events:
        if isinstance(event, Backward):
            near = (each for each in early if event.where.turns[: len(each.where.turns)] == each.where.turns)
            waiting += [each for each in near if set(event.parameters) & set(each.parameters)]
            state.update(dict.fromkeys(event.parameters, "added"))
            early = []
        elif isinstance(event, Cleared):
            state.update(dict.fromkeys(event.parameters, "cleared"))
            cleared.update(dict.fromkeys(event.parameters, event))
        elif isinstance(event, Stepped):
            yield from ((each, event, False) for each in waiting if set(event.parameters) & set(each.parameters))
            waiting = []
            state.update({each: event for each in event.parameters if state.get(each) == "added"})
        elif isinstance(event, Clipped) and event.parameters and _limits(event) and not event.where.phase:
            found = {state.get(each) for each in event.parameters}
            only = found.pop() if len(found) == 1 else None
            since = (
                only if isinstance(only, Stepped) else cleared.get(event.parameters[0]) if only == "cleared" else None
            )
            if since is None or (any(each.escaped for each in event.parameters) and _is_disturbed(path, since, event)):
                continue
            if isinstance(only, Stepped) and emptied.issuperset(event.parameters):
                yield event, only, True
            elif only == "cleared":
                early.append(event)


def _is_disturbed(path: Path, first: Event, last: Event) -> bool:
    """Whether code out of sight runs between two events: what has the parameters may compute gradients then."""
    return any(first.time < each.time < last.time for each in path.of(CalledUnknown))


def _limits(event: Clipped) -> bool:
    """Whether a call may do more than measure the norm: its limit is not so high that nothing is above it."""
    limit = number_of(event.limit)
    return event.limit is not None and (limit is None or limit < _HIGH)
