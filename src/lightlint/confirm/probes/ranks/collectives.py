"""Which collectives the ranks called, and where DDP decided to exchange gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lightlint.confirm.probes.probe import Probe, confirmed, hits, refuted, still_open, through
from lightlint.confirm.records import Event, Process, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_Sequences = Mapping[int, Sequence[Event]]


def collectives_per_rank(claim: Claim, run: Run) -> Verdict:
    """Whether the ranks' sequences of collectives part at the finding's line, or only some ranks come to it and they part."""
    called = {
        rank: [event for event in process.of("collective") if event["whole"]] for rank, process in run.ranks.items()
    }
    numbers = [Number("collectives called", len(each), rank=rank) for rank, each in called.items()]
    at = _parting(called)
    reached = {rank for rank, _ in hits(claim, run)}
    if at is None:
        if any(through(event["places"], claim) for events in called.values() for event in events):
            return refuted(
                run, f"all ranks call the same {len(called[0])} collectives, those of this line too", numbers
            )
        return still_open(run, "no collective of this line was seen, and those seen are the same on all ranks", numbers)
    have = {rank: events[at] for rank, events in called.items() if at < len(events)}
    rank, event = next(((r, e) for r, e in have.items() if through(e["places"], claim)), (None, None))
    if rank is None and reached and reached != set(run.ranks):  # Lightning reduces a log at the end of the epoch
        rank, event = next(((each, have[each]) for each in sorted(reached) if each in have), (None, None))
    if rank is None or event is None:
        return still_open(run, f"the ranks part at collective {at + 1}, which does not come from this line", numbers)
    others = [each for each in run.ranks if each != rank]
    if any(_went_on(run.ranks[other], called[other], at, event, run) for other in others):
        shape = f" of shape {event['shape']}" if event["shape"] is not None else ""
        instead = ", ".join(f"rank {other} {_next(called[other], at)}" for other in others)
        reason = f"collective {at + 1} is `{event['name']}`{shape} on rank {rank}, where {instead}"
        return confirmed(run, reason, numbers)
    return still_open(run, f"the run ended before the other ranks could call collective {at + 1}", numbers)


def _parting(called: _Sequences) -> int | None:
    """The first index at which not every rank calls the same."""
    for at in range(max(map(len, called.values()), default=0)):
        kinds = {(each[at]["name"], str(each[at]["shape"])) if at < len(each) else None for each in called.values()}
        if len(kinds) > 1:
            return at
    return None


def _went_on(process: Process, own: Sequence[Event], at: int, event: Event, run: Run) -> bool:
    """Whether a rank surely did not call it: it called another, it ended, the run stood still, or it did other things."""
    if at < len(own) or run.ended in {"stalled", "timed out"}:
        return True
    if any(end["reason"] in {"finished", "cut"} for end in process.of("end")):
        return True
    later = [each for each in process.of("batch", "step", "line", "collective") if each.time > event.time]
    return bool(later)


def _next(own: Sequence[Event], at: int) -> str:
    return f"calls `{own[at]['name']}`" if at < len(own) else "calls none"


def exchanges(claim: Claim, run: Run) -> Verdict:
    """Whether a backward pass inside `no_sync` follows a forward pass that had already decided to exchange gradients."""
    if "never runs outside" in claim.message:
        return _never_exchanged(run)
    lost = kept = 0
    for process in run.ranks.values():
        wanted: dict[int, bool] = {}
        for event in process.of("exchange"):
            if event["when"] == "forward" and event["grad"]:
                wanted[event["model"]] = event["wanted"]
            elif event["when"] == "backward" and not event["wanted"] and event["model"] in wanted:
                lost += wanted[event["model"]]
                kept += not wanted[event["model"]]
    numbers = [Number("backward passes inside `no_sync`", lost + kept), Number("of them with an exchange", lost)]
    if lost:
        return confirmed(run, f"{lost} of {lost + kept} backward passes inside `no_sync` exchange gradients", numbers)
    if kept:
        return refuted(run, f"none of {kept} backward passes inside `no_sync` exchanges gradients", numbers)
    return still_open(run, "no backward pass ran inside `no_sync`")


def _never_exchanged(run: Run) -> Verdict:
    """Whether every forward pass that gradients come from ran inside `no_sync`."""
    passes = [event["wanted"] for _, event in run.each("exchange") if event["when"] == "forward" and event["grad"]]
    numbers = [Number("forward passes", len(passes)), Number("of them inside `no_sync`", passes.count(False))]
    if any(passes):
        return refuted(run, f"{sum(passes)} of {len(passes)} forward passes ran outside of `no_sync`", numbers)
    if len(passes) > 1 and run.steps > 1:
        return confirmed(run, f"all {len(passes)} forward passes ran inside `no_sync`: no step exchanged", numbers)
    return still_open(run, "too few forward passes to tell", numbers)


def forwards_per_rank(claim: Claim, run: Run) -> Verdict:
    """Whether some ranks alone ran a DDP model from the finding's line, and whether that exchanges buffers."""
    came: dict[int, list[Event]] = {}
    for rank, event in run.each("exchange"):
        if event["when"] == "forward" and through(event["places"], claim):
            came.setdefault(rank, []).append(event)
    numbers = [Number("forward passes of DDP from this line", len(came.get(rank, ())), rank=rank) for rank in run.ranks]
    if not came:
        return still_open(run, "no forward pass of a DDP model came from this line", numbers)
    if set(came) == set(run.ranks):
        return refuted(run, "all ranks ran the model from this line", numbers)
    ranks = ", ".join(map(str, sorted(came)))
    if any(event["buffers"] for events in came.values() for event in events):
        return confirmed(
            run, f"only rank {ranks} ran the model from this line, and DDP broadcasts its buffers", numbers
        )
    if not any(event["grad"] for events in came.values() for event in events):
        return refuted(run, f"only rank {ranks} ran the model, which has no buffers to exchange", numbers)
    return still_open(run, f"only rank {ranks} ran the model, which has no buffers to exchange", numbers)


PROBES = {
    "forwards-per-rank": Probe(forwards_per_rank, meters=("collectives",), ranks=2, needs_lines=False),
    "collectives-per-rank": Probe(collectives_per_rank, meters=("collectives",), ranks=2, needs_lines=False),
    "syncs-per-step": Probe(exchanges, meters=("collectives",), ranks=2),
}
