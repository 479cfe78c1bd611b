from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import CudaUsed, LoaderWorked
from lightlint.explore.questions.certain import anyhow
from lightlint.facts.project.mentions import occurs
from lightlint.values.core import NONE, is_constant, number_of, written

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_CANNOT = "a worker that was forked cannot use CUDA"
_SPAWNED = r"set_start_method\(\s*(?:method\s*=\s*)?\\?['\"](?:spawn|forkserver)"


class CudaInDataloaderWorker(Check):
    def stands(self) -> bool:
        """Whether no other file of the project has its workers spawned."""
        return not occurs(self.facts.project, "set_start_method", _SPAWNED)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """What a forked worker does with CUDA, whatever tests say."""
        for event in entry.of(LoaderWorked):
            loader = event.loader
            forks = is_constant(loader.arguments.get("multiprocessing_context", NONE), None, "fork")
            if not forks or not number_of(written(loader.arguments.get("num_workers"))) or loader.open_arguments:
                continue
            for used in anyhow(each for each in event.events if isinstance(each, CudaUsed)):
                if used.site[0] == event.site[0]:
                    yield Fault(used.site, f"{_CANNOT}, and this runs in the loader's workers", None, (event.site,))
                elif used.where.calls:
                    function = used.where.calls[-1].function
                    owner = f"{function.owner.name}." if function.owner is not None else ""
                    name = f"`{owner}{function.name}` of {Path(function.file).name}"
                    yield Fault(event.site, f"{_CANNOT}, and {name} does in this loader's workers", None, (used.site,))
