from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path as File
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, GroupStarted
from lightlint.facts.project.mentions import occurs
from lightlint.facts.ranks.processes import HOST_RANK
from lightlint.values.core import is_constant, text_of
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

# words by which a process gets a device of its own
_CHOSEN = re.compile(
    r"set_device|VISIBLE_DEVICES|device_id\b|set_default_device|torch\.cuda\.device\(|cuda\.device\(|local_rank\s*\)\s*$"
    r"|accelerate|deepspeed|horovod|megatron|lightning|ray\b"
)
_WRAPPERS = {
    "torch.nn.parallel.DistributedDataParallel": "DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel": "FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_shard": "fully_shard",
}
_HIDDEN = r"environ[^\n]*VISIBLE_DEVICES[^\n]*="


class MissingSetDevice(Check):
    of_several_processes = True

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Process groups of nccl whose ranks all wrap a model on the device that CUDA takes first."""
        text = self.facts.source.text
        if _CHOSEN.search(text) or HOST_RANK.search(text) or self._is_chosen_elsewhere():
            return
        for path in entry.paths:
            started = [event for event in path.of(GroupStarted) if event.given is not None and _is_nccl(event)]
            wrapped = next((event for event in path.of(Called) if _takes_first_device(path, event)), None)
            if started and wrapped is not None:
                name, line = _WRAPPERS[wrapped.path], wrapped.site[1]
                message = f"no rank is given a device of its own: `{name}` in line {line} puts all of them on GPU 0"
                yield Fault.at(started[0], message, wrapped.site)

    def _is_chosen_elsewhere(self) -> bool:
        """Whether a file that imports this one, or that this one imports, may choose the device."""
        project, path = self.facts.project, self.facts.path
        called = self.facts.world.called_by_users
        if any(name.endswith("set_device") for name in called) or project.imports_one_with(path, "set_device"):
            return True
        hidden = occurs(project, "VISIBLE_DEVICES", _HIDDEN, File(self.facts.source.filename).absolute())
        return hidden or bool(project.users(path, "set_device"))


def _is_nccl(event: GroupStarted) -> bool:
    return event.given is not None and text_of(event.given.get(0, "backend")) == "nccl"


def _takes_first_device(path: Path, event: Called) -> bool:
    """Whether a model is wrapped that was moved to CUDA's current device, which is the first unless set."""
    if event.path not in _WRAPPERS or not event.given.exact:
        return False
    if _WRAPPERS[event.path] != "DistributedDataParallel":
        return True
    module = event.given.get(0, "module")
    if event.argument("device_ids", 1) is not None or not isinstance(module, Module):
        return False
    moves = [each for each in path.of(Called) if each.receiver is module and each.path in ("cuda", "to")]
    moves = [each for each in moves if each.time < event.time]
    return bool(moves) and _names_no_index(moves[-1])


def _names_no_index(move: Called) -> bool:
    given = move.given.get(0, "device")
    return (move.path == "cuda" and given is None) or is_constant(given, "cuda")
