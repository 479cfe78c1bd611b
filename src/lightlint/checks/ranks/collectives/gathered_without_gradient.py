from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Collective, Stepped
from lightlint.explore.questions.queries import may_be_alone
from lightlint.values.core import GATHERS

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Cut
    from lightlint.values.training import Tensor


class GatheredWithoutGradient(Check):
    of_several_processes = True

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Collectives whose results go into a loss as constants, where nothing else brings their gradient back."""
        for path in entry.paths:
            collectives = {event.site: event for event in path.of(Collective)} if path.finished else {}
            trained = {each for step in path.of(Stepped) for each in step.parameters} if collectives else set()
            for event in path.of(Backward):
                for cut in event.loss.cuts if event.loss is not None else ():
                    gathered = collectives.get(cut.site)
                    if gathered is None or may_be_alone(gathered.where) or not _is_lost(cut, trained):
                        continue
                    message = f"`{gathered.name}` gives constants: no gradient comes back from the loss to what is gathered here"
                    yield Fault.at(gathered, message)


def _is_lost(cut: Cut, trained: set[Tensor]) -> bool:
    """Whether what was gathered was made with parameters that are trained, by uses that no loss goes back through."""
    uses = [each for each in cut.graphs if not each.guess]
    known = bool(uses) and bool(cut.parameters & trained)
    return known and cut.how in GATHERS and not any(each.used or each.escaped for each in cut.graphs)
