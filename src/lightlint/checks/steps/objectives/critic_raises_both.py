from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Differentiated, Forward, Stepped
from lightlint.models.numbers.sums import NotLinear, linear_terms
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_PREDICTED = "predicted"


class CriticRaisesBoth(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses that raise, or lower, what a network says of the data and of what another network has made as well."""
        for path in entry.paths:
            said = {id(each.result): each for each in path.of(Forward)}
            for event in path.of(Backward):
                loss = event.loss
                if loss is not None and loss.site is not None and self._raises_both(path, event, loss, said):
                    message = "what the network says of the real data and of the generated ones has the same sign in its loss: both go up, or down, and nothing tells them apart"
                    yield Fault(loss.site, message, None, (event.site,))

    def _raises_both(self, path: Path, event: Backward, loss: Tensor, said: dict[int, Forward]) -> bool:
        terms, others = [], 0
        for sign, term in linear_terms(loss, said):
            answer = _origin(term, said)
            if isinstance(term, NotLinear) or answer is None:
                others += isinstance(term, (Tensor, NotLinear))
            else:
                terms.append((sign, answer))
        modules = {id(each.module): each.module for _, each in terms}
        penalty = any(each.time < event.time for each in path.of(Differentiated))
        if len(modules) != 1 or others > penalty or len({sign for sign, _ in terms}) != 1:
            return False
        (module,) = modules.values()
        made = [any(_PREDICTED in one.traits for one in each.inputs) for _, each in terms]
        return {True, False} == set(made) and _trains(path, event, module)


def _origin(term: object, said: dict[int, Forward]) -> Forward | None:
    """The forward pass that gave a term, in whatever shape."""
    for _ in range(4):
        if id(term) in said:
            return said[id(term)]
        term = getattr(term, "shaped_from", None) or getattr(term, "moved_from", None)
    return None


def _trains(path: Path, event: Backward, module: Module) -> bool:
    """Whether the next step of an optimizer behind a backward pass is one for a module."""
    first = next((each for each in path.of(Stepped) if each.time > event.time), None)
    own = {id(each) for each in module.parameters()}
    return first is not None and bool(first.parameters) and all(id(each) in own for each in first.parameters)
