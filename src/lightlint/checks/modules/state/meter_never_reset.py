from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, Stepped
from lightlint.explore.questions.queries import in_sight
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.engine.frames import Loop
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site


class MeterNeverReset(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Sums over the batches of one evaluation that the next one goes on with, where both read what they came to."""
        told: set[Site] = set()
        for path in entry.paths:
            for event, again in _gone_on_with(path):
                name, is_own = _name_of(event)
                site = event.site if is_own else event.object.site if isinstance(event.object, Instance) else None
                if site is not None and site not in told and name and _is_read(event, name):
                    told.add(site)
                    message = f"`{name}` is never reset: from the second evaluation on it is about all of them so far"
                    yield Fault(site, message, None, (again.site,), () if not is_own else event.where.places[1:])


def _gone_on_with(path: Path) -> Iterator[tuple[AttributeSet, AttributeSet]]:
    """Sums of what a network said, taken in an evaluation, with the step by which the next evaluation goes on with them."""
    latest: dict[tuple[int, str], AttributeSet] = {}
    for event in path.of(AttributeSet):
        holder, key = event.object, (id(event.object), event.name)
        before = latest.get(key)
        latest[key] = event
        if before is None or event.before is not before.value:
            continue
        if not isinstance(holder, Instance) or holder.kind != "object" or not in_sight([holder]):
            continue
        sums = all({"summed", "predicted"} <= each.value.traits and not each.where.grad for each in (before, event))
        around = _epochs(before, event) if sums else None
        if around is None or holder.made >= around.made:
            continue
        if any(before.where.time < step.where.time < event.where.time for step in path.of(Stepped)):
            yield before, event


def _epochs(event: AttributeSet, again: AttributeSet) -> Loop | None:
    """The loop whose next turn has come between two steps of a sum over batches, which are each in a loop of that turn."""
    earlier, later = event.where.turns, again.where.turns
    for depth, (one, other) in enumerate(zip(earlier, later, strict=False)):
        if one.loop is not other.loop:
            return None
        if one.number != other.number:
            batches = [
                turns[-1].loop.kind in ("batch", "elements") and len(turns) > depth + 1 for turns in (earlier, later)
            ]
            return one.loop if all(batches) and other.number == one.number + 1 and one.loop.kind != "batch" else None
    return None


def _name_of(event: AttributeSet) -> tuple[str, bool]:
    """What the loop over the batches calls the meter, or its own sum; whether it is the latter."""
    batches, depth = event.where.turns[-1].loop, len(event.where.turns) - 1
    step = next((call.site for call in event.where.calls if call.turns > depth), None)
    for node in ast.walk(batches.node) if batches.node is not None else ():
        if step is not None and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if _at(node, step):
                return ast.unparse(node.func.value), False
        elif step is None and isinstance(node, ast.AugAssign) and _at(node.target, event.site):
            return ast.unparse(node.target), True
    return "", False


def _at(node: ast.expr, site: Site) -> bool:
    return (node.lineno, node.col_offset) == site[1:3]


def _is_read(event: AttributeSet, name: str) -> bool:
    """Whether the evaluation reads a meter by its name once its batches are through."""
    batches, depth = event.where.turns[-1].loop, len(event.where.turns) - 1
    functions = [call.function.node for call in event.where.calls if call.turns <= depth and call.turns]
    around = functions[-1] if functions else event.where.turns[-2].loop.node
    inside = {id(each) for each in ast.walk(batches.node)} if batches.node is not None else set()
    for node in ast.walk(around) if around is not None else ():
        if not isinstance(node, (ast.Name, ast.Attribute)) or id(node) in inside:
            continue
        if isinstance(node.ctx, ast.Load) and node.lineno > batches.site[1] and ast.unparse(node) == name:
            return True
    return False
