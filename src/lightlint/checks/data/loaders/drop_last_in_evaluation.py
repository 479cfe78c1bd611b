from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.explore.questions.evaluation import evaluated_loaders
from lightlint.facts.project.mentions import has_no_step_for
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class DropLastInEvaluation(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Loaders of nothing but evaluation that leave the last examples out."""
        for loader, event in evaluated_loaders(entry).values():
            size = loader.arguments.get("batch_size")
            single = size is None or is_constant(size, 1)  # of which nothing can be left over
            dropped = is_constant(loader.arguments.get("drop_last"), True) and not single
            if not dropped or has_no_step_for(self.facts.project, self.facts.source, event.where.phase):
                continue
            if loader.site is not None:
                message = "the loader that is evaluated leaves out what is left over behind the last whole batch"
                yield Fault(loader.site, message)
