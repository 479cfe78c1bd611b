"""What data loaders drew: overlap between ranks, waiting, order from epoch to epoch."""

from __future__ import annotations

from collections.abc import Mapping

from lightlint.confirm.probes.probe import Probe, confirmed, not_observable, refuted, still_open
from lightlint.confirm.records import Event, Process, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_SHARED = 0.5  # share of another rank's samples from which on ranks count as drawing the same
_WAITING = 0.3  # share of a step spent waiting for data that is worth workers


def sample_overlap(claim: Claim, run: Run) -> Verdict:
    """How many of a rank's samples another rank draws, too, and how many batches are the same on all ranks."""
    drawn = {rank: _first_pass(process) for rank, process in run.ranks.items()}
    if any(each is None for each in drawn.values()):
        return not_observable(run, "not every rank drew from a loader")
    indices = {rank: set(each["indices"]) for rank, each in drawn.items() if each and each["indices"] is not None}
    same, batches = _same_batches(run)
    numbers = [Number("batches equal on all ranks", f"{same} of {batches}")]
    if len(indices) == len(drawn):
        everything = set().union(*indices.values())
        redundancy = sum(map(len, indices.values())) / max(1, len(everything))
        numbers += [Number("samples drawn", len(each), rank=rank) for rank, each in indices.items()]
        numbers.append(Number("samples drawn by all ranks together / distinct", round(redundancy, 3)))
        share = (redundancy - 1) / max(1, len(indices) - 1)
        if share >= _SHARED:
            return confirmed(
                run, f"the ranks draw the same samples: {share:.0%} overlap, {same} of {batches} batches equal", numbers
            )
        return refuted(run, f"each rank draws its own samples: {share:.0%} overlap", numbers)
    if batches and same == batches:
        return confirmed(run, f"all {batches} batches are the same on every rank", numbers)
    return still_open(run, "batches differ; the samples of iterable data cannot be told apart", numbers)


def _first_pass(process: Process) -> Event | None:
    """The first pass over the loader that most batches came from: the training loader."""
    counts: dict[int, int] = {}
    for event in process.of("batch"):
        counts[event["loader"]] = counts.get(event["loader"], 0) + 1
    if not counts:
        return None
    loader = max(counts, key=lambda each: counts[each])
    return next((event for event in process.of("pass") if event["loader"] == loader), None)


def _same_batches(run: Run) -> tuple[int, int]:
    digests: list[Mapping[tuple[int, int, int], str]] = [
        {(event["loader"], event["pass"], event["number"]): event["digest"] for event in process.of("batch")}
        for process in run.ranks.values()
    ]
    common = set(digests[0]).intersection(*digests[1:])
    return sum(len({each[key] for each in digests}) == 1 for key in common), len(common)


PROBES = {
    "sample-overlap": Probe(sample_overlap, meters=("loaders",), ranks=2, needs_lines=False),
}
