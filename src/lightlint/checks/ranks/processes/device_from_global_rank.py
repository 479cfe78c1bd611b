from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, GroupStarted
from lightlint.explore.questions.queries import holds, reached_by_others
from lightlint.facts.data.launches import tells_of_one_node
from lightlint.finding import Tier
from lightlint.values.core import Sequence, Unknown, Value

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_NODES = {"nnodes", "num_nodes"}
_OF_NODES = _NODES | {"GROUP_RANK", "SLURM_NODEID"}
_LOCAL = _OF_NODES | {"LOCAL_RANK", "local_rank", "LOCAL_WORLD_SIZE", "local_world_size", "SLURM_LOCALID"}
_MESSAGE = "this rank counts the processes of all nodes: the second node has no such device"


class DeviceFromGlobalRank(Check):
    of_several_processes = True

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Devices by the number of a rank among the processes of all nodes."""
        if self._is_of_one_node():
            return
        launched = self.facts.project.is_on_nodes(self.facts.path.parent)
        words = _LOCAL if launched is None else _OF_NODES
        told = launched or any(word in self.facts.source.text for word in words)
        others = reached_by_others(entry, Called)
        for path in entry.paths:
            composed = _composed(path)
            said: set[Hashable] = set()  # the first device that a rank is taken for says it for the rest
            for event in path.of(Called):
                index = _index(event)
                if index is None or (event.receiver is not None and event.receiver.kind != "module"):
                    continue
                of_all, key = "rank of all" in index.traits, index.key if isinstance(index, Unknown) else None
                which = None if of_all else key
                if not (of_all or (key is not None and key in composed)) or which in said or _is_of_first(event, key):
                    continue
                if others is None or event.site in others:
                    said.add(which)
                    yield Fault.at(event, _MESSAGE, tier=Tier.NOTE if of_all and not told else None)

    def _is_of_one_node(self) -> bool:
        """Whether calls of the file say how many nodes there are, and all say one, or a command in it does."""
        if tells_of_one_node(self.facts.source.text):
            return True
        named = [arg for arg in self.tree.all(cst.Arg) if arg.keyword is not None and arg.keyword.value in _NODES]
        return bool(named) and all(self.names.constant(arg.value) == 1 for arg in named)


def _index(event: Called) -> Value | None:
    """The device's number, or its name with the number, that a call takes."""
    if event.path == "torch.cuda.set_device":
        return event.argument("device", 0)
    if event.path == "torch.device":
        return event.argument("index", 1) or event.argument("type", 0) or event.argument("device", 0)
    if event.path in ("cuda", "to") and event.receiver is not None:
        return event.argument("device", 0)
    if event.path == "torch.nn.parallel.DistributedDataParallel":
        given = event.argument("device_ids", 1)
        return given.items[0] if isinstance(given, Sequence) and given.items else None
    return None


def _is_of_first(event: Called, rank: Hashable | None) -> bool:
    """Whether a test of a rank that is out of sight stands around a call: `if rank == 0` is of the first node."""
    return rank is not None and any(holds(each.key, rank) for each in event.where.conditions)


def _composed(path: Path) -> set[Hashable]:
    """The ranks that the program makes of the node's number and the place on it, and joins the process group as."""
    started = (event for event in path.of(GroupStarted) if event.by == "init_process_group")
    given = [event.given.get(4, "rank") for event in started if event.given is not None]
    return {each.key for each in given if isinstance(each, Unknown) and each.key is not None and _is_sum(each.key)}


def _is_sum(key: Hashable) -> bool:
    """Whether a key is that of a product and something more, as of `node_rank * gpus + gpu`."""
    sides = key[1:] if isinstance(key, tuple) and key and key[0] == "+" else ()
    return any(isinstance(each, tuple) and each and each[0] in ("*", "product") for each in sides)
