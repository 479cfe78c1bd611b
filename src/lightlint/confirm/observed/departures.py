"""What ended a run: the rank that raised, left, was killed or stood still first, and in what the others waited."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten

from lightlint.confirm.observed.observation import Observation, Place, after, at, listed, places_of
from lightlint.confirm.observed.syncs import Sync, parting, syncs_of
from lightlint.confirm.records import Event, Process, Run

_LOST = re.compile(
    r"closed by peer|connection (?:was )?(?:reset|closed|refused)|broken pipe|\bgloo\b|\bNCCL\b|monitoredBarrier"
    r"|process group|TCPStore|terminated with (?:code|signal|exit code)|remote process exited",
    re.IGNORECASE,
)  # what a rank says that lost another one
_LOST_TYPES = {
    *("DistBackendError", "DistNetworkError", "DistStoreError", "DistError"),
    *("ChildFailedError", "SignalException", "ProcessRaisedException", "ProcessExitedException"),
}
_WAITING_FILES = re.compile(r"/torch/(?:distributed|autograd|nn/parallel|_tensor\.py)")
_WORKER_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<row>\d+), in (?P<function>\S+)')
_LIBRARY = re.compile(r"/(?:(?:site|dist)-packages|lib/python3[^/]*)/")
_AGENT_SAID = re.compile(r"exitcode\s*:\s*(?P<code>-?\d+) \(pid: (?P<pid>\d+)\)")
_LONGEST = 160  # characters of an error's message
_ENDED_BY_LAUNCHER = {signal.SIGTERM, signal.SIGINT}
_MEMORY = " (the kernel does so where memory runs out)"


@dataclass(frozen=True, slots=True)
class _Departure:
    """A rank that is no longer with the others."""

    rank: int
    kind: str
    did: str
    said: str
    step: int
    time: float
    places: tuple[Place, ...]


def explained(run: Run) -> Observation | None:
    """Who was no longer with the others first; None where all ranks came to the same points and to their end."""
    syncs = syncs_of(run)
    index = parting(syncs)
    if index is not None and (apart := _different(syncs, index)):
        return apart
    gone = list(_departures(run)) or list(_left(run, syncs, index)) or list(_standing(run, syncs, index))
    return _told(run, syncs, gone) if gone else None


def _different(syncs: Mapping[int, Sequence[Sync]], index: int) -> Observation | None:
    """Two ranks that call different collectives at the same time."""
    here = {rank: each[index] for rank, each in syncs.items() if index < len(each)}
    if len({(each.name, each.shape) for each in here.values()}) < 2:
        return None
    said = ", ".join(f"rank {rank} called {sync.said}" for rank, sync in here.items())
    first = min(here.values(), key=lambda sync: sync.step)
    return Observation(
        "parted",
        f"the ranks called different collectives {after(first.step)}: {said}",
        ("each waits for the others in its own",),
        ranks=tuple(here),
        places=tuple(place for sync in here.values() for place in sync.places[:1]),
        probes=frozenset({"collectives-per-rank", "forwards-per-rank", "steps-per-rank", "loss-per-rank"}),
    )


def _departures(run: Run) -> Iterator[_Departure]:
    """Who raised, called `sys.exit` or was killed by what is not the launcher, those for a reason of their own only.

    A program may handle an error, and come to its end all the same.
    """
    for rank, process in _processes(run):
        unhandled = not run.is_whole or any(event["reason"] == "exception" for event in process.of("end"))
        errors = [event for event in process.of("exception") if not _lost_another(event, process, run)]
        raised = errors[0] if errors and unhandled else None
        exited = None if run.is_whole else _exit(process)
        killed = _killed(process, run)
        if raised is not None:
            places = _places(raised)
            worker = " in a worker of its data loader" if "DataLoader worker process" in raised["message"] else ""
            did, said = f"raised {raised['type']}{worker}", _first_line(raised)
            yield _Departure(rank, "raised", did, said, raised.step, raised.time, places)
        elif exited is not None and (exited["code"] != "0" or not all(map(_exit, run.ranks.values()))):
            code = f" with status {exited['code']}" if exited["code"].isdigit() else ""
            did = f"called `{exited['name']}`{code}"
            yield _Departure(rank, "exited", did, "", exited.step, exited.time, places_of(exited["places"]))
        elif killed is not None:
            time, number = killed
            name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
            did = f"was killed by {name}{_MEMORY if number == signal.SIGKILL else ''}"
            yield _Departure(rank, "killed", did, "", process.steps, time, _last_seen(process))


def _processes(run: Run) -> Iterator[tuple[int, Process]]:
    """The ranks, or, where something ended the run before there were any, what else could have done it."""
    yield from run.ranks.items()
    known = set(map(id, run.ranks.values()))
    if not any(process.of("rank") for process in run.ranks.values()):
        for process in run.processes:
            if id(process) not in known and (process.start.get("spawned") or process.start.get("forked")):
                yield -1, process


def _lost_another(event: Event, process: Process, run: Run) -> bool:
    """Whether an error comes from the end of another rank."""
    if event["type"] in _LOST_TYPES or any(_LOST.search(text) for text in (event["message"], *event.get("causes", ()))):
        return True
    if event["type"] == "KeyboardInterrupt" and not process.of("rank"):
        return False
    inside = event["frames"] and _WAITING_FILES.search(event["frames"][-1][0])
    before = (
        each for other in run.ranks.values() if other is not process for each in other.of("end", "exit", "exception")
    )
    return bool(inside) and any(each.time < event.time for each in before)


def _killed(process: Process, run: Run) -> tuple[float, int] | None:
    """When a signal ended a process, and which: as its parent got it, or as torchrun's agent says."""
    if process.of("end", "exit") or process.name not in run.gone:
        return None
    time, status = run.gone[process.name]
    if status is None:
        said = (
            match
            for each in run.processes
            for event in each.of("exception")
            for match in _AGENT_SAID.finditer(event["message"])
        )
        code = next((int(match["code"]) for match in said if int(match["pid"]) == process.key[1]), 0)
        number = -code if code < 0 else 0
    else:
        number = status & 0x7F
    return (time, number) if number and number not in _ENDED_BY_LAUNCHER | {signal.SIGABRT} else None


def _exit(process: Process) -> Event | None:
    """Where a process called its end, rather than coming to the `sys.exit(main())` of its last line from a loop it left."""
    called = next(iter(process.of("exit")), None)
    left = _loop_left(process)
    return (
        None if called is None or (left is not None and left.time < called.time and called["code"] == "0") else called
    )


def _left(run: Run, syncs: Mapping[int, Sequence[Sync]], index: int | None) -> Iterator[_Departure]:
    """Who came to its end before a point that others came to, or lost it at. Who was cut did not leave by itself."""
    if index is None and (run.is_whole or not any(run.each("exception"))):
        return
    for rank, process in run.ranks.items():
        end = next(iter(process.of("end")), None)
        came = index is not None and index < len(syncs[rank])
        if came or end is None or end["reason"] != "finished" or process.of("exception"):
            continue
        loop = _loop_left(process)
        places = places_of(loop["places"]) if loop else ()
        did = "left the loop and ended" if loop else "ended"
        yield _Departure(rank, "left", did, "", process.steps, end.time, places or _last_seen(process))


def _loop_left(process: Process) -> Event | None:
    """Where a process left its last loop over a loader, if it did nothing more than that."""
    left = list(process.of("pass-left"))
    if not left or any(event.time > left[-1].time for event in process.of("step", "batch", "collective", "exchange")):
        return None
    return left[-1]


def _standing(run: Run, syncs: Mapping[int, Sequence[Sync]], index: int | None) -> Iterator[_Departure]:
    """Who did not come to a point at which others are, and is still there."""
    if run.is_whole or index is None:
        return
    for rank, process in run.ranks.items():
        if index < len(syncs[rank]) or process.of("end"):
            continue
        places = places_of(run.standing.get(process.name, ()))
        if places:
            yield _Departure(rank, "stood still", "stood still", "", process.steps, 0.0, places)


def _told(run: Run, syncs: Mapping[int, Sequence[Sync]], gone: Sequence[_Departure]) -> Observation:
    first = min(gone, key=lambda each: each.time)
    alike = [
        each for each in gone if (each.kind, each.did, each.places[:1]) == (first.kind, first.did, first.places[:1])
    ]
    ranks = tuple(each.rank for each in alike if each.rank >= 0)
    seen = at(first.places)
    unsure = first.kind == "killed" or first.did == "ended"  # where it told something last is not where it went
    where = f", last seen{seen}" if unsure and seen else seen
    said = f": {first.said}" if first.said else ""
    message = f"{_who(run, ranks)} {first.did}{where}, {after(first.step)}{said}"
    return Observation(
        first.kind,
        message,
        tuple(_waiting(run, syncs, ranks)),
        ranks=ranks,
        places=first.places,
        probes=frozenset({"steps-per-rank", "collectives-per-rank", "forwards-per-rank", "loss-per-rank"}),
    )


def _who(run: Run, ranks: Sequence[int]) -> str:
    if not ranks:
        return "a process that the program started"
    return listed(ranks) if len(run.ranks) > 1 else "the program"


def _waiting(run: Run, syncs: Mapping[int, Sequence[Sync]], gone: Sequence[int]) -> Iterator[str]:
    """Where the others wait for a rank that is gone: the point behind those that it came to."""
    counts = [len(syncs[rank]) for rank in gone if rank in syncs]
    for rank, process in run.ranks.items():
        own = syncs.get(rank, ())
        places = places_of(run.standing.get(process.name, ()))
        lost = next(iter(process.of("exception")), None)
        if rank in gone:
            continue
        if counts and min(counts) < len(own):
            yield f"rank {rank} waited for it in {own[min(counts)].said}"
        elif places and not process.of("end"):
            yield f"rank {rank} stood{at(places)}"
        elif lost is not None and process.of("rank") and _lost_another(lost, process, run):
            yield f"rank {rank} lost it{at(_places(lost))}"
        elif not process.of("end") and (seen := _last_seen(process)):  # its launcher ended it, too
            yield f"rank {rank} was last seen{at(seen)}"


def unexplained(run: Run) -> Observation | None:
    """A run that failed for what no event explains."""
    if run.is_whole or run.ended == "interrupted":
        return None
    if run.ended in {"stalled", "timed out"}:
        stood = {rank: places_of(run.standing.get(process.name, ())) for rank, process in run.ranks.items()}
        said = [f"{_who(run, (rank,))} stood{at(places)}" for rank, places in stood.items() if places]
        what = "the run stood still" if run.ended == "stalled" else "the run did not end in time"
        places = tuple(each[0] for each in stood.values() if each)
        return Observation("stood still", f"{what}, {after(run.steps)}", tuple(said), ranks=tuple(stood), places=places)
    lost = [(event.time, rank, event) for rank, event in run.each("exception")]
    if lost:
        _, rank, event = min(lost, key=lambda each: each[0])
        message = f"{_who(run, (rank,))} raised {event['type']}{at(_places(event))}, {after(event.step)}"
        return Observation("lost", f"{message}: {_first_line(event)}", ranks=(rank,), places=_places(event))
    if not run.started:
        return Observation("lost", f"the command ended with status {run.status} before it began")
    number = -run.status if run.status is not None and run.status < 0 else 0
    name = signal.Signals(number).name if number in set(signal.Signals) else ""
    how = f"was killed by {name}" if name else f"ended with status {run.status}"
    seen = max(run.ranks.values(), key=lambda process: len(process.events), default=None)
    where = at(_last_seen(seen)) if seen is not None else ""
    return Observation("lost", f"the program {how}, {after(run.steps)}" + (f", last seen{where}" if where else ""))


def _places(event: Event) -> tuple[Place, ...]:
    """Where an error was raised in the user's code: in the worker, if it comes from one."""
    frames = places_of(event.get("places") or [])
    if "DataLoader worker process" in event["message"]:
        found = [(m["file"], int(m["row"]), m["function"]) for m in _WORKER_FRAME.finditer(event["message"])]
        return (*reversed([each for each in found if not _LIBRARY.search(each[0])]), *frames)
    return frames


def _first_line(event: Event) -> str:
    text = event["message"]
    if "DataLoader worker process" in text:
        text = text.strip().splitlines()[-1].partition(": ")[2] or text
    lines = text.strip().splitlines()
    return shorten(lines[0], _LONGEST, placeholder=" ...") if lines else ""


def _last_seen(process: Process) -> tuple[Place, ...]:
    """Where a process was when it last told."""
    told = [event for event in process.events if event.get("places") and event.kind not in {"loader", "write"}]
    return places_of(told[-1]["places"]) if told else ()
