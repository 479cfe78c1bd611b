from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward
from lightlint.models.numbers.sums import NotLinear, linear_terms
from lightlint.values.core import CHANCES, LISTED, Value
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class MeanLogProbabilityTimesReturns(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses with the mean of all steps' log probabilities as one factor, and what each step is worth as the other."""
        for event in entry.of(Backward):
            for _, term in linear_terms(event.loss) if event.loss is not None else ():
                factors = term.factors if isinstance(term, NotLinear) else ()
                for one, other in (factors, factors[::-1]) if len(factors) > 1 else ():
                    if isinstance(one, Tensor) and _is_mean_of_chances(one) and _is_of_steps(other):
                        message = "the log probabilities of all steps are reduced to one number before each meets what its step is worth: every action gets the same credit"
                        yield Fault(one.site or event.site, message, None, (event.site,))


def _is_mean_of_chances(value: Tensor) -> bool:
    symbol, parts = value.terms or ("", ())
    if symbol in ("+", "-"):  # the other side of a sum, as in `0 - mean`
        return any(isinstance(each, Tensor) and _is_mean_of_chances(each) for each in parts)
    source = parts[0] if parts else None
    if not value.scalar or value.escaped or not isinstance(source, Tensor) or source.scalar:
        return False
    several = symbol == "mean" or (symbol == "sum" and bool(source.stacked))
    return several and source.traits >= CHANCES and source.requires_grad


def _is_of_steps(value: Value) -> bool:
    """Whether something is a number for each step: a tensor of a list, of which no single one was picked."""
    if not isinstance(value, Tensor) or value.requires_grad or value.part_of is not None:
        return False
    return not value.scalar and value.traits >= LISTED and not value.traits & CHANCES
