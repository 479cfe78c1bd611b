from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Stepped
from lightlint.explore.questions.queries import in_sight
from lightlint.values.core import Cut, Unknown, Value

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


def _reused(earlier: list[Backward], again: Backward, step: Stepped) -> Cut | None:
    """Where the result was detached that both passes hang on, the later one for the optimizer that made it."""
    own = set(step.parameters)
    if again.loss is None or not own & set(again.parameters) or not in_sight([step.optimizer, again.loss]):
        return None
    for event in earlier:
        if event.loss is not None and event.graph & again.graph and not own & set(event.parameters):
            shared = [cut for cut in event.loss.cuts & again.loss.cuts if cut.how == "detach" and cut.parameters & own]
            if shared:
                return shared[0]
    return None


def _of_one_out_of_sight(earlier: list[tuple[Backward, Stepped]], again: Backward, step: Stepped) -> bool:
    """Whether a pass goes again over an answer to a detached result, and the one before it was over answers of that module alone.

    What modules out of sight hold is not known: but the optimizer that stepped in between had nothing else to step by.
    """
    for event, stepped in earlier:
        if (
            not event.kept
            or event.loss is None
            or again.loss is None
            or event.parameters
            or stepped.optimizer is step.optimizer
        ):
            continue
        shared, asked = event.loss.answers & again.loss.answers, {_asked(each) for each in event.loss.answers}
        if len(asked) == 1 and any(_is_of_detached(each) for each in shared):
            return True
    return False


def _is_of_detached(answer: Value) -> bool:
    """Whether something out of sight was asked about the detached result of something else."""
    return isinstance(answer, Unknown) and any(
        isinstance(each, Unknown)
        and each.hint == "detach"
        and isinstance(each.given_by, Unknown)
        and bool(each.given_by.lent)
        and _asked(each.given_by) != _asked(answer)
        for each in answer.lent
    )


def _asked(answer: Value) -> tuple[str, int]:
    """What gave an answer, by its name and what it was an attribute of."""
    return (answer.hint, id(answer.given_by)) if isinstance(answer, Unknown) else ("", 0)


class DetachedScoreReused(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes that go again over a critic's answer on detached pictures, for an optimizer of who made these."""
        for path in entry.paths:
            earlier: list[tuple[Backward, Stepped]] = []
            pending: Backward | None = None
            for event in path.events:
                if isinstance(event, Backward):
                    pending = event
                elif isinstance(event, Stepped) and pending is not None:
                    cut = _reused([each for each, _ in earlier], pending, event)
                    if cut is not None or _of_one_out_of_sight(earlier, pending, event):
                        message = "reuses what was computed from a detached result, before its optimizer stepped: it gives the one that steps next no gradient"
                        yield Fault.at(pending, message, *([cut.site] if cut is not None else []))
                    earlier.append((pending, event))
                    pending = None
