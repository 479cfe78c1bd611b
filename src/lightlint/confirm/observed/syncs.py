"""The points that all ranks must come to together, in order: collectives, and DDP's exchanges of gradients and buffers.

They are recorded before they are waited for, so that they tell the same under gloo, where a call blocks, and under NCCL,
where the program goes on to the next call that needs a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lightlint.confirm.observed.observation import Place, at, places_of
from lightlint.confirm.records import Event, Process, Run

_MOST = 20_000  # events of a process; behind so many the meter tells no more
_UNEVEN = {"all_to_all", "all_to_all_single"}  # whose tensors may differ in shape from rank to rank


@dataclass(frozen=True, slots=True)
class Sync:
    """One of them.

    Attributes:
        name: the function, as a message names it.
        shape: of its tensor, where it must be the same on all ranks.
        why: what is waited for in a function that is not called for that.
    """

    name: str
    shape: str
    why: str
    step: int
    time: float
    places: tuple[Place, ...]

    @property
    def said(self) -> str:
        shape = f" of shape {self.shape}" if self.shape else ""
        why = f", where {self.why}" if self.why else ""
        return f"`{self.name}`{shape}{at(self.places)}{why}"


def syncs_of(run: Run) -> Mapping[int, Sequence[Sync]]:
    """Each rank's, of the groups of all ranks; none where they cannot be compared: inside `join`, or far too many."""
    found = {rank: list(_syncs(process)) for rank, process in run.ranks.items()}
    joined = any(event.get("joined") for _, event in run.each("exchange"))
    if run.world < 2 or joined or any(len(each) >= _MOST for each in found.values()):
        return {}
    return found


def _syncs(process: Process) -> Iterator[Sync]:
    pending: set[int] = set()  # models whose next backward pass exchanges gradients
    exchanged: dict[int, int] = {}  # how often they did
    for event in process.of("collective", "exchange"):
        if not event.get("whole", True):
            continue
        if event.kind == "collective":
            shape = "" if event["shape"] is None or event["name"] in _UNEVEN else str(event["shape"])
            yield _sync(event, str(event["name"]), shape)
        elif event["when"] == "forward":
            if event["grad"] and event["wanted"]:
                pending.add(event["model"])
            if event["buffers"]:
                yield _sync(event, "forward", why="DDP broadcasts buffers")
            elif event["model"] in pending and exchanged.get(event["model"]) == 1 and event.get("regroups"):
                exchanged[event["model"]] += 1
                yield _sync(event, "forward", why="DDP agrees on the order of its gradients")
        elif event["model"] in pending:
            pending.discard(event["model"])
            exchanged[event["model"]] = exchanged.get(event["model"], 0) + 1
            yield _sync(event, "backward", why="DDP exchanges gradients")


def _sync(event: Event, name: str, shape: str = "", why: str = "") -> Sync:
    return Sync(name, shape, why, event.step, event.time, places_of(event["places"]))


def parting(syncs: Mapping[int, Sequence[Sync]]) -> int | None:
    """The first index at which not every rank comes to the same point."""
    for index in range(max(map(len, syncs.values()), default=0)):
        kinds = {(each[index].name, each[index].shape) if index < len(each) else None for each in syncs.values()}
        if len(kinds) > 1:
            return index
    return None
