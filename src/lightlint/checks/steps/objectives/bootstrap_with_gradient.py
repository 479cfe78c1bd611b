from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LossComputed, Stepped
from lightlint.explore.questions.bootstrap import bootstrapped
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class BootstrapWithGradient(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Targets through whose bootstrap the gradient goes back into the parameters that are to come near them."""
        entries = self.facts.rehearsed.entries
        made = {(each.site, each.serial) for one in entries for event in one.of(Stepped) for each in event.parameters}
        for event, target, factors in bootstrapped(entry):
            if not isinstance(event, LossComputed):  # a square may be a priority, of which no gradient is asked
                continue
            given = event.input
            reached = target.parameters if target.requires_grad else frozenset()
            answers = [each for each in factors if isinstance(each, Tensor) and each.answer and each.requires_grad]
            for each in answers:
                shared = each.parameters & given.parameters & reached if isinstance(given, Tensor) else frozenset()
                if any(one.requires_grad and (one.site, one.serial) in made for one in shared):
                    message = "the gradient flows into the target, too: the value of the next state is moved towards that of this one"
                    yield Fault.at(event, message)
