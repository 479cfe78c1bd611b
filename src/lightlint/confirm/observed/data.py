"""What the ranks drew from their loaders: loops left by some, unequal numbers of batches, the same samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lightlint.confirm.observed.observation import Observation, Place, after, at, listed, places_of
from lightlint.confirm.observed.syncs import Sync, syncs_of
from lightlint.confirm.records import Event, Process, Run

_FEWEST = 2  # batches that must be the same on all ranks


@dataclass(frozen=True, slots=True)
class _Pass:
    """A rank's pass over a loader.

    Attributes:
        end: `through` the loader, `cut` by lightlint, `left` by the program.
        step: optimizer steps behind it.
        place: where it was left.
        length: batches of the loader, None where that is not known.
    """

    batches: int
    end: str
    step: int
    places: tuple[Place, ...]
    length: int | None

    @property
    def goes_on(self) -> bool:
        """Whether the rank would have gone on in its loop behind its last batch."""
        return self.end == "cut" and (self.length is None or self.length > self.batches)


def loops_left(run: Run) -> Iterator[Observation]:
    """The first training loop that some ranks left, or came to the end of, where others went on or were only cut."""
    for by_rank in _passes(run):
        fewest = min(each.batches for each in by_rank.values())
        out = {
            rank: each
            for rank, each in by_rank.items()
            if each.batches == fewest and not each.goes_on and each.end != "cut"
        }
        on = {rank: each for rank, each in by_rank.items() if each.batches > fewest or each.goes_on}
        if not out or not on:
            continue
        left = {rank: each for rank, each in out.items() if each.end == "left"}
        rank, first = next(iter((left or out).items()))
        more = ", ".join(f"rank {other} {_more(each, fewest)}" for other, each in on.items())
        if left:
            message = (
                f"{listed(left)} left the loop over the batches{at(first.places)}, {after(first.step)}, where {more}"
            )
            kind = "loop left"
        else:
            message = f"{listed(out)} had no more batches {after(first.step)}, where {more}"
            kind = "unequal batches"
        yield Observation(
            kind,
            message,
            tuple(_would_wait(run, rank, on)),
            ranks=tuple(left or out),
            places=first.places,
            probes=frozenset({"steps-per-rank"}),
        )
        return


def _more(each: _Pass, fewest: int) -> str:
    if each.batches > fewest:
        return f"drew {each.batches - fewest} more"
    return f"had {each.length - each.batches} more" if each.length is not None else "went on"


def _would_wait(run: Run, gone: int, others: Mapping[int, _Pass]) -> Iterator[str]:
    """In what the others wait in their next step: in what they waited for all ranks in this one."""
    syncs = syncs_of(run)
    for rank in others:
        sync = _next_sync(syncs[rank], len(syncs.get(gone, ()))) if rank in syncs else None
        if sync is not None:
            yield f"rank {rank} waits for it in {sync.said}"


def _next_sync(own: Sequence[Sync], count: int) -> Sync | None:
    return own[count] if count < len(own) else (own[-1] if own else None)


def unequal_loaders(run: Run) -> Iterator[Observation]:
    """The training loader that has not as many batches on each rank, where no rank came to its end."""
    for by_rank in _passes(run):
        lengths = {rank: each.length for rank, each in by_rank.items()}
        known = [length for length in lengths.values() if length is not None]
        if len(known) < len(lengths) or len(set(known)) == 1 or any(each.end != "cut" for each in by_rank.values()):
            continue
        said = ", ".join(f"rank {rank} {length}" for rank, length in lengths.items())
        message = f"the training loader has different numbers of batches: {said}; the ranks part behind the shortest"
        yield Observation(
            "unequal batches",
            message,
            ranks=tuple(lengths),
            places=_made(run, next(iter(run.ranks))),
            probes=frozenset({"steps-per-rank"}),
        )
        return


def _passes(run: Run) -> Iterator[dict[int, _Pass]]:
    """The training passes of all ranks that ended, by rank, in order: those in which DDP exchanged gradients."""
    if not syncs_of(run) or not all(any(map(_exchanges, process.of("exchange"))) for process in run.ranks.values()):
        return
    each = {rank: list(_training_passes(process)) for rank, process in run.ranks.items()}
    for number in range(min(map(len, each.values()), default=0)):
        yield {rank: passes[number] for rank, passes in each.items()}


def _exchanges(event: Event) -> bool:
    return bool(event["when"] == "forward" and event["grad"] and event["wanted"] and event.get("whole", True))


def _training_passes(process: Process) -> Iterator[_Pass]:
    loader = _training_loader(process)
    length = next((event["length"] for event in process.of("loader") if event["loader"] == loader), None)
    before = 0
    for event in process.of("pass-end", "pass-left"):
        if event["loader"] != loader:
            continue
        trained, before = event.step > before, event.step
        if trained:
            left = event.kind == "pass-left"
            end = "left" if left else "cut" if event["cut"] else "through"
            yield _Pass(event["batches"], end, event.step, places_of(event["places"]) if left else (), length)


def _made(run: Run, rank: int) -> tuple[Place, ...]:
    process = run.ranks[rank]
    loader = _training_loader(process)
    made = (event["places"] for event in process.of("loader") if event["loader"] == loader)
    return places_of(next(made, ()))


def same_samples(run: Run) -> Iterator[Observation]:
    """Training batches that are the same on all ranks of a model that averages their gradients."""
    if not all(any(map(_exchanges, process.of("exchange"))) for process in run.ranks.values()) or run.world < 2:
        return
    drawn = [_digests(process) for process in run.ranks.values()]
    count = min(map(len, drawn))
    same = [first for first, *others in zip(*drawn, strict=False) if all(each == first for each in others)]
    if _inputs_differ(run):  # each rank takes its own part of the same batches
        return
    if count >= _FEWEST and len(same) == count and len(set(same)) >= _FEWEST:
        yield Observation(
            "same samples",
            f"{listed(run.ranks)} trained on the same samples: {count} of {count} batches are equal",
            ("their average is the gradient of one rank: the others add nothing",),
            ranks=tuple(run.ranks),
            places=_made(run, next(iter(run.ranks))),
            probes=frozenset({"sample-overlap"}),
        )


def _inputs_differ(run: Run) -> bool:
    given = [
        [event.get("inputs") for event in process.of("exchange") if _exchanges(event)] for process in run.ranks.values()
    ]
    return any(None not in each and len(set(each)) > 1 for each in zip(*given, strict=False))


def _digests(process: Process) -> list[str]:
    """Of the training batches, in order."""
    loader = _training_loader(process)
    return [event["digest"] for event in process.of("batch") if event["loader"] == loader]


def _training_loader(process: Process) -> int | None:
    """The loader that most steps took their batch from; the one that is evaluated on may give more batches."""
    steps: Counter[int] = Counter()
    last = None
    for event in process.of("batch", "step"):
        if event.kind == "batch":
            last = event["loader"]
        elif last is not None:
            steps[last] += 1
    return max(steps, key=lambda loader: steps[loader], default=None)
