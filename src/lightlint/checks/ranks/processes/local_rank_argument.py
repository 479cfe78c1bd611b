from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, GroupStarted
from lightlint.values.core import text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_SPELLS_IT_OTHERWISE = "2.0"  # before, `torch.distributed.launch` gives the option as it is written
_GLOBAL = {"--global_rank", "--global-rank", "--rank", "--world_rank", "--world-rank"}
_FLAGS = {"--local_rank", "--local-rank"}
# words of launchers that pass the option, and of programs that read the variable or set the attribute
_ELSEWHERE = re.compile(
    r"LOCAL_RANK|deepspeed|mp\.spawn|multiprocessing|torch\.distributed\.launch|SLURM_|accelerate|horovod"
)


_CHOOSING = {"torch.cuda.set_device", "torch.device", "cuda", "to"}


class LocalRankArgument(Check):
    of_several_processes = True

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Options for the local rank by which a device is chosen, which no launcher of today gives."""
        if not self.facts.torch.may_be_at_least(_SPELLS_IT_OTHERWISE) or _ELSEWHERE.search(self.facts.source.text):
            return
        asked = [event for event in entry.of(Called) if event.path == "add_argument" and _is_untold(event)]
        if any(_flags(event) & _GLOBAL for event in entry.of(Called) if event.path == "add_argument"):
            return  # who starts the processes gives each its ranks
        if asked and _SETS.search(self.facts.source.text) is None and self._chooses_device() and self._is_read():
            for event in asked:
                yield Fault.at(event, _message(_flags(event)))

    def _chooses_device(self) -> bool:
        """Whether the file starts a process group, and chooses a device by a rank."""
        entries = self.facts.rehearsed.entries
        starts = any(
            event.by in ("init_process_group", "spawn") for entry in entries for event in entry.of(GroupStarted)
        )
        called = (event for entry in entries for event in entry.of(Called) if event.path in _CHOOSING)
        return starts and any("rank" in value.traits for event in called for value in event.given.values())

    def _is_read(self) -> bool:
        """Whether the option is asked for, in this file or in one that is run with it."""
        others = (self.facts.project.text(each) for each in self.facts.rehearsed.others)
        return any(_READ.search(text or "") for text in (self.facts.source.text, *others))


_READ = re.compile(r"\.local_rank\b|[\"']local_rank[\"']")
_SETS = re.compile(r"\.local_rank\s*=[^=]")


def _is_untold(event: Called) -> bool:
    """Whether an option for the local rank does not take it from the environment by default."""
    default = event.argument("default")
    return bool(_flags(event) & _FLAGS) and not (default is not None and "rank" in default.traits)


def _flags(event: Called) -> set[str]:
    return {text_of(each) or "" for each in event.given.positional}


def _message(flags: set[str]) -> str:
    if flags >= _FLAGS:
        return "`torchrun` gives no `--local_rank`: every process it starts keeps the default and its device"
    if "--local-rank" in flags:
        return "`torchrun` gives no `--local-rank`: every process it starts keeps the default and its device"
    return "`torchrun` gives no `--local_rank`, and `torch.distributed.launch` of torch 2 spells it the other way"
