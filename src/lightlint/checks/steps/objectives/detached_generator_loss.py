from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Cleared, Clipped, LossComputed, Stepped
from lightlint.explore.questions.queries import gradient_used, in_function_of, in_sight, sure
from lightlint.values.core import Site, Value
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


_DEPTH = 5
_PREDICTED = "predicted"


class DetachedGeneratorLoss(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes behind which an optimizer steps that got no gradient, since what its module gave was detached, on each path."""
        faults = {event for path in entry.paths for event in _cut_off(path)}
        message = "this loss hangs on the module that is stepped next through `detach()` alone: its optimizer gets no gradient"
        yield from (Fault.at(event, message) for event in sure(entry, Backward, lambda each: each in faults))
        dead = {event: term for path in entry.paths for event, term in _dead_terms(path)}
        message = "this term of the loss hangs on the module that is stepped next through `detach()` alone: nothing learns from it"
        for event in sure(entry, Backward, lambda each: each in dead):
            yield Fault(_place(event, dead[event]), message, None, (event.site,), event.where.places[1:])


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


def _dead_terms(path: Path) -> Iterator[tuple[Backward, Tensor]]:
    """The terms of losses whose gradient gets to nothing that steps: the module that does was cut off, and there is no gradient,
    or what it reaches is cleared before it steps."""
    judged = {each.site for each in path.of(LossComputed) if each.where.grad and _judges_detached(each)}
    for event, step in pairwise(each for each in path.events if isinstance(each, (Backward, Stepped))):
        if not isinstance(event, Backward) or not isinstance(step, Stepped) or event.loss is None:
            continue
        own = set(step.parameters)
        whole = own & set(event.parameters) and in_sight([event.loss, step.optimizer, *_owners(own)])
        for term in _terms(event.loss) if whole and not any(each.gradient_touched for each in own) else ():
            cut = any(each.how == "detach" and each.parameters & own for each in term.cuts)
            reached = term.parameters
            if cut and not reached and not term.requires_grad and term.criterion and term.site in judged:
                yield event, term
            dead = cut and reached and not reached & own and not term.mixed
            if not dead or not in_sight([term, *_owners({*reached})]):
                continue
            if gradient_used(path, reached, step.time, (Stepped, Clipped)) is False:
                yield event, term


def _judges_detached(event: LossComputed) -> bool:
    """Whether a loss holds the answer of a network, which was detached, against labels or one number."""
    said, wanted = event.input, event.target
    if not isinstance(said, Tensor) or not isinstance(wanted, Tensor) or _PREDICTED not in said.traits:
        return False
    unsure = any(each.requires_grad or each.escaped or each.mixed or each.guessed for each in (said, wanted))
    return not unsure and (wanted.filling is not None or bool(wanted.seen)) and {e.how for e in said.cuts} == {"detach"}


def _terms(loss: Value, depth: int = 0) -> Iterator[Tensor]:
    """What a loss is the sum of, without its factors."""
    symbol, parts = loss.terms if loss.terms is not None and depth < _DEPTH else ("", ())
    tensors = [each for each in parts if isinstance(each, Tensor)]
    if symbol in ("+", "-") or (symbol in ("*", "/") and len(tensors) == 1):
        for each in tensors:
            yield from _terms(each, depth + 1)
    elif depth and isinstance(loss, Tensor):
        yield loss


def _place(event: Backward, term: Tensor) -> Site:
    """Where a term is worked out, if the function that goes backward does so."""
    return term.site if term.site is not None and in_function_of(event.where, term.site) else event.site


def _owners(parameters: set[Tensor]) -> list[Module]:
    return [each.owner for each in parameters if each.owner is not None]
