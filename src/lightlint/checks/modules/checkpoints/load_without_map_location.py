from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called, GroupStarted, StateLoaded
from lightlint.explore.questions.groups import in_same_process
from lightlint.facts.data.file_names import is_published, may_be_one, name_of_key, name_written
from lightlint.facts.objects.checkpoints import LOAD, SAVE
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import insert_argument
from lightlint.values.core import Mapping, Site, Unknown, Value
from lightlint.values.training import Module, Optimizer

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


_ONTO_ONE = "every rank loads onto the GPU that the file was saved from: all onto one"
_NOWHERE = "a file saved from a GPU does not load where there is none, and this program is made to run there"


# words by which a process gets a device of its own
_OWN_DEVICE = re.compile(
    r"set_device|VISIBLE_DEVICES|device_ids?\b|local_rank|\.gpu\b|cuda[:(].*rank|rank\)|device.*rank"
)
_NUMBERS = re.compile(r"sched|scaler", re.IGNORECASE)  # of one that comes from out of sight


class LoadWithoutMapLocation(Check):
    of_several_processes = True

    def _uses_cuda(self) -> bool:
        words = {name.value for name in self.tree.all(cst.Name)}
        texts = {self.names.constant(text) for text in self.tree.all(cst.SimpleString)}
        return (
            "cuda" in words
            or "nccl" in texts
            or any(isinstance(each, str) and each.startswith("cuda") for each in texts)
        )

    def _saves(self, loaded: str) -> bool:
        """Whether the file may write what it loads by a name, from models that live on a GPU by then."""
        saves = (call for call in self.tree.all(cst.Call) if self.names.call(call) == SAVE)
        files = (self.names.argument(call, "f", 1) for call in saves)
        return any(file is None or may_be_one(name_written(self.facts, file.value), loaded) for file in files)

    def _runs_without_cuda(self) -> bool:
        """Whether the file asks for a GPU and takes the CPU where there is none."""
        for choice in self.tree.all(cst.IfExp, cst.If):
            asked = any(
                self.names.call(call) == "torch.cuda.is_available" for call in self.tree.within(choice.test, cst.Call)
            )
            other = choice.orelse
            texts = (
                {self.names.constant(text) for text in self.tree.within(other, cst.SimpleString)} if other else set()
            )
            if asked and "cpu" in texts:
                return True
        return False

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Loads of states, without a word of the device, that each rank does, or a program that may run without a GPU."""
        ranks = self._on_ranks(entry) if self._uses_cuda() else set()
        for event in entry.of(StateLoaded):
            held = event.state.loaded if isinstance(event.state, (Unknown, Mapping)) else None
            call = held[0] if isinstance(held, tuple) else held
            if not isinstance(call, Called) or not _may_hold_tensors(event.object):
                continue
            if call.argument("map_location", 1) is not None or not call.given.exact:
                continue
            file = call.argument("f", 0)
            name = name_of_key(file.key if file is not None else None)
            if is_published(name):
                continue
            if event.site in ranks:
                apart = _OWN_DEVICE.search(self.facts.source.text)  # else all ranks share one as it is
                sure = apart and self._saves(name) and not _may_be_of_one(entry)
                yield Fault.at(call, _ONTO_ONE, tier=None if sure else Tier.NOTE)
            elif self._runs_without_cuda():
                yield Fault.at(call, _NOWHERE, tier=Tier.NOTE)

    def _on_ranks(self, entry: Entry) -> set[Site]:
        """Where each rank loads."""
        pairs = [(first, second) for first, second in entry.pairs() if first.of(GroupStarted)]
        loads = [
            [{load.site for load in path.of(StateLoaded) if _is_of_rank(path, load)} for path in pair] for pair in pairs
        ]
        return set().union(*(mine & theirs for mine, theirs in loads))

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        if not isinstance(node, cst.Call) or self.names.call(node) != LOAD:
            return None
        draft = insert_argument(self.code, node, 'map_location="cpu"')
        return Repair("load onto the CPU", draft, Applicability.UNSAFE)


def _may_be_of_one(entry: Entry) -> bool:
    """Whether an entry is a method that nothing in its file calls, of an object which is told whether there are several ranks."""
    told = (any(not each.known for each in event.where.conditions) for event in entry.of(GroupStarted))
    return "." in entry.name and all(told)


def _is_of_rank(path: Path, load: StateLoaded) -> bool:
    """Whether a process loads that is one of several, and not the one that has started them."""
    inside = (each.site in load.where.places for each in path.of(GroupStarted) if each.by == "spawn")
    joined = (in_same_process(path, each, load) for each in path.of(GroupStarted) if each.by != "spawn")
    return any(inside) or any(joined)


def _may_hold_tensors(value: Value) -> bool:
    """Whether the place of a state matters: a schedule or scaler holds numbers."""
    return isinstance(value, Module | Optimizer) or (isinstance(value, Unknown) and not _NUMBERS.search(value.hint))
