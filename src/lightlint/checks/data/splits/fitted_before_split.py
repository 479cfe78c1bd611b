from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, Event, RowsCut, RowsScaled, SplitDrawn, Stepped
from lightlint.explore.questions.queries import are_same
from lightlint.models.data.learning import learns
from lightlint.values.core import PART, Constant, Value, is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_HELD_OUT = re.compile(
    r"(?:^|_)(?:x_?|y_?)?(?:test|val|valid|validation|eval|held|holdout|dev)(?:_|$|\d|[A-Z])|(?:[Tt]est|[Vv]al)(?:ing|_|$|[A-Z])"
)
_DEPTH = 3


class FittedBeforeSplit(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Transformers that were fitted on all rows before some are set aside for a test."""
        trains = any(path.of(Stepped) for path in entry.paths)
        for path in entry.paths:
            fitted = [event for event in path.of(Called) if event.path.startswith("fit") and _learns(event)]
            fitted = [event for event in fitted if not _holds_others_back(path, event)]
            scaled = [event for event in path.of(RowsScaled) if not (event.where.turns or event.result.traits >= PART)]
            if not fitted and not scaled:
                continue
            for split in path.of(SplitDrawn):
                found = _seen(fitted, scaled, split, split.data[0]) if split.data else None
                if split.name == "train_test_split" and found is not None and "fitted" in split.data[0].traits:
                    yield _fault(found, split, "`train_test_split` sets")
            for first, last in _cut_apart(path) if trains else ():
                found = _seen(fitted, scaled, first, first.value)
                if found is not None and (_says_held_out(path, first) or _says_held_out(path, last)):
                    yield _fault(found, first, f"line {last.site[1]} sets")


def _holds_others_back(path: Path, fitted: Called) -> bool:
    """Whether a transformer learns from rows of an earlier split, or changes rows of another table, too: a test is held back then,
    and what is split off later only chooses the model."""
    learnt = fitted.given.positional[:1]
    changed = (each for each in path.of(Called) if each.path == "transform" and each.receiver is fitted.receiver)
    others = (each.given.positional[0] for each in changed if each.given.positional)
    return any(each.traits >= PART for each in learnt) or any(
        not (each.traits >= PART or any(are_same(each, one) for one in learnt)) for each in others
    )


def _seen(fitted: list[Called], scaled: list[RowsScaled], split: Event, rows: Value) -> Called | RowsScaled | None:
    """What saw all rows before a split: what gave these, else the last transformer that was fitted."""
    own = [each for each in scaled if each.result is rows and each.time < split.time]
    before: list[Called | RowsScaled] = [*own, *(each for each in fitted if each.time < split.time)]
    others = [each for each in scaled if each.time < split.time]
    return own[-1] if own else before[-1] if before else others[-1] if others else None


def _fault(event: Called | RowsScaled, split: Event, who: str) -> Fault:
    if isinstance(event, RowsScaled):
        message = f"what these rows are scaled by is of all of them, also of those that {who} aside: they are no test any more"
        return Fault.at(event, message, split.site)
    shown = event.receiver.name if event.receiver is not None else ""
    message = f"`{shown}.{event.path}` sees the rows that {who} aside: they are no test any more"
    return Fault.at(event, message, split.site)


def _learns(event: Called) -> bool:
    return event.receiver is not None and event.receiver.kind == "estimator" and learns(event.receiver)


def _cut_apart(path: Path) -> Iterator[tuple[RowsCut, RowsCut]]:
    """Two parts of rows: those up to a number, and those from there on, or from a few before it, as of windows that begin in the
    first part."""
    cuts = [each for each in path.of(RowsCut) if not each.where.turns]
    for first in cuts:
        if is_constant(first.lower, None) and not is_constant(first.upper, None):
            later = [each for each in cuts if each.time > first.time and _begins_at(each.lower, first.upper)]
            yield from ((first, each) for each in later[:1])


def _begins_at(lower: Value, upper: Value, depth: int = 0) -> bool:
    if are_same(lower, upper):
        return not is_constant(lower, None)
    symbol, parts = lower.terms if lower.terms is not None and depth < _DEPTH else ("", ())
    if isinstance(lower, Constant) and isinstance(upper, Constant):
        return False
    return symbol in ("-", "+") and _begins_at(parts[0], upper, depth + 1)


def _says_held_out(path: Path, event: Event) -> bool:
    """Whether the statement that takes some rows calls something a test."""
    tree = path.machine.sources.tree(event.site[0])
    row = event.site[1]
    found = [
        each
        for each in (ast.walk(tree) if tree is not None else ())
        if isinstance(each, ast.stmt) and each.lineno <= row <= (each.end_lineno or row) and not hasattr(each, "body")
    ]
    names = (
        getattr(one, "id", getattr(one, "attr", getattr(one, "arg", None))) for each in found for one in ast.walk(each)
    )
    return any(isinstance(name, str) and _HELD_OUT.search(name) for name in names)
