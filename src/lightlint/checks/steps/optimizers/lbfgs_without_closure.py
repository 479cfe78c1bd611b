from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called
from lightlint.explore.questions.queries import sure
from lightlint.values.training import Optimizer

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_LBFGS = {"torch.optim.LBFGS", "torch.optim.lbfgs.LBFGS"}


class LbfgsWithoutClosure(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in sure(entry, Called, _is_bare_step) if ".step" in entry.calls else ():
            message = "`LBFGS.step` needs a closure that computes the loss anew: a TypeError without one"
            yield Fault.of(event, message)


def _is_bare_step(event: Called) -> bool:
    made = event.receiver
    bare = event.path == "step" and event.given.exact and not event.given.values()
    return (
        bare
        and isinstance(made, Optimizer)
        and made.libraries()[-1:] == made.libraries()[:1]
        and made.libraries()[0] in _LBFGS
    )
