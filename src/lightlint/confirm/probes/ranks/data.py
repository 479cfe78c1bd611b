"""What data loaders drew: overlap between ranks and workers, waiting, order from epoch to epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median

from lightlint.confirm.probes.probe import (
    Probe,
    confirmed,
    hits,
    not_observable,
    not_reached,
    refuted,
    still_open,
    through,
)
from lightlint.confirm.records import Event, Process, Run
from lightlint.confirm.verdict import Claim, Number, Outcome, Verdict

_SHARED = 0.5  # share of another rank's samples from which on ranks count as drawing the same
_WAITING = 0.3  # share of a step spent waiting for data that is worth workers
_WARM_UP = 3  # batches of a run that are not timed
_TIMED = 2  # batches that a share of the time needs


def sample_overlap(claim: Claim, run: Run) -> Verdict:
    """How many of a rank's samples another rank draws, too, and how many batches are the same on all ranks."""
    if "workers" in claim.message.partition(":")[0]:
        return _worker_overlap(run)
    if run.world < 2:
        return not_observable(run, "shows on 2 ranks only: add `--devices 2`") if run.is_whole else not_reached(run)
    drawn = {rank: _first_pass(process, claim) for rank, process in run.ranks.items()}
    if any(each is None for each in drawn.values()):
        return not_observable(run, "not every rank drew from this loader")
    indices = {rank: set(each["indices"]) for rank, each in drawn.items() if each and each["indices"] is not None}
    loaders = {each["loader"] for each in drawn.values() if each}
    same, batches = _same_batches(run, loaders)
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
    if batches and same == batches and _distinct(run) > 1:
        return confirmed(run, f"all {batches} batches are the same on every rank", numbers)
    return still_open(run, "batches differ; the samples of iterable data cannot be told apart", numbers)


def _worker_overlap(run: Run) -> Verdict:
    """Whether the workers of one loader hand out the same batches: they take turns, so equal ones are neighbours."""
    for _, loader in run.each("loader"):
        workers = loader["workers"]
        if not loader["iterable"] or workers < 2:
            continue
        for process in run.ranks.values():
            digests = [each["digest"] for each in process.of("batch") if _is_of(each, loader["loader"], 1)]
            rounds = [digests[at : at + workers] for at in range(0, len(digests) - workers + 1, workers)]
            numbers = [
                Number("batches drawn", len(digests), rank=process.rank),
                Number("distinct batches", len(set(digests)), rank=process.rank),
            ]
            if len(set(digests)) > 1 and rounds and all(len(set(each)) == 1 for each in rounds):
                return confirmed(run, f"each of the {workers} workers handed out the same batches", numbers)
            if len(rounds) > 1 and len(set(digests)) == len(digests):
                return refuted(run, f"the {workers} workers handed out {len(digests)} different batches", numbers)
    return still_open(run, "no pass over iterable data was long enough to compare its workers")


def _is_of(batch: Event, loader: int, number: int) -> bool:
    return (batch["loader"], batch["pass"]) == (loader, number)


def _distinct(run: Run) -> int:
    return len({event["digest"] for _, event in run.each("batch")})


def _first_pass(process: Process, claim: Claim) -> Event | None:
    """The first pass over the claim's loader; where the finding is about a data set, over iterable data."""
    own = {each["loader"] for each in process.of("loader", "pass") if through(each["places"], claim)}.intersection(
        process.batches
    )
    if claim.name == "iterable-dataset-unsharded":
        own = {each["loader"] for each in process.of("loader") if each["iterable"]}.intersection(process.batches)
    if not own:
        return None
    loader = max(own, key=lambda each: process.batches[each])
    return next((event for event in process.of("pass") if event["loader"] == loader), None)


def _same_batches(run: Run, loaders: set[int]) -> tuple[int, int]:
    digests: list[Mapping[tuple[int, int, int], str]] = [
        {
            (event["loader"], event["pass"], event["number"]): event["digest"]
            for event in process.of("batch")
            if event["loader"] in loaders
        }
        for process in run.ranks.values()
    ]
    common = set(digests[0]).intersection(*digests[1:])
    return sum(len({each[key] for each in digests}) == 1 for key in common), len(common)


def dataset_hash(claim: Claim, run: Run) -> Verdict:
    """Whether the ranks came to the finding's draw in the same random state, and to the same values."""
    first: dict[int, Event] = {}
    for rank, event in hits(claim, run):
        first.setdefault(rank, event)
    if len(first) < 2:
        return not_observable(run, "only one rank came to the line")
    names, different = _compared(first, "values", 1)
    if different:
        numbers = [
            Number(f"checksum of {different[0]}", event["changes"]["values"][different[0]][1], rank=rank)
            for rank, event in first.items()
        ]
        return confirmed(run, f"the ranks hold different data in `{different[0]}`", numbers)
    verdict = _by_generators(run, first)
    if names and verdict.outcome is not Outcome.CONFIRMED:
        return refuted(run, f"all ranks hold the same data in {', '.join(f'`{each}`' for each in sorted(names))}")
    return verdict


def _compared(first: Mapping[int, Event], snapshot: str, at: int) -> tuple[set[str], list[str]]:
    """What every rank has in a snapshot that its line changed, before it (0) or behind (1), and which of it differs."""
    seen = [_changed(event, snapshot, at) for event in first.values()]
    names = set(seen[0]).intersection(*seen[1:])
    return names, sorted(name for name in names if len({each[name] for each in seen}) > 1)


def _by_generators(run: Run, first: Mapping[int, Event]) -> Verdict:
    """By the state of the generators that the line drew from: the same state gives the same numbers."""
    drawn, different = _compared(first, "rng", 0)
    if different:
        numbers = [
            Number(f"state of {different[0]}'s generator", event["changes"]["rng"][different[0]][0], rank=rank)
            for rank, event in first.items()
        ]
        return confirmed(run, f"the ranks draw here from {different[0]}'s generator in different states", numbers)
    if drawn:
        return refuted(run, "the ranks draw here from generators in the same state, so they get the same numbers")
    return not_observable(run, "the line drew from no global generator and left no data in a variable")


def _changed(event: Event, snapshot: str, side: int) -> dict[str, str]:
    """What a line changed: name to the value before (side 0) or after (1)."""
    pairs = event["changes"].get(snapshot, {})
    return {name: pair[side] for name, pair in pairs.items() if pair[0] != pair[1]}


def data_wait(claim: Claim, run: Run) -> Verdict:
    """The share of a step that the training process waits for its next batch."""
    if not any(run.each("step")):
        return not_observable(run, "nothing was trained with it")
    shares: dict[int, list[tuple[float, float]]] = {}
    for rank, process in run.ranks.items():
        own = {each["loader"] for each in process.of("loader") if through(each["places"], claim)}
        batches = [each for each in process.of("batch") if each["loader"] in own]
        pairs = [
            (after["wait"], after.time - before.time - after["told"])
            for before, after in pairwise(batches[_WARM_UP - 1 :])
            if _is_of(after, before["loader"], before["pass"])
        ]
        if len(pairs) >= _TIMED:
            shares[rank] = pairs
    if not shares:
        return still_open(run, f"fewer than {_TIMED + _WARM_UP} batches came from this loader")
    pooled = {rank: sum(wait for wait, _ in pairs) / sum(whole for _, whole in pairs) for rank, pairs in shares.items()}
    typical = {rank: median(wait / whole for wait, whole in pairs) for rank, pairs in shares.items()}
    numbers = [Number("share of a step spent waiting", round(100 * pooled[rank], 1), "%", rank) for rank in shares]
    rank = max(shares, key=lambda each: pooled[each])
    said = f"{pooled[rank]:.0%} of a step is spent waiting for the next batch"
    if min(pooled[rank], typical[rank]) > _WAITING:
        return confirmed(run, said, numbers)
    if max(pooled[rank], typical[rank]) <= _WAITING:
        return refuted(run, f"{said}, too little for workers", numbers)
    return still_open(run, f"{said}, and {typical[rank]:.0%} of a typical one", numbers)


def batches_per_pass(claim: Claim, run: Run) -> Verdict:
    """How many batches came from each start of the loader on the finding's line."""
    started, drawn, steps = 0, 0, 0
    for process in run.ranks.values():
        begun = [each for each in process.of("pass") if through(each["places"], claim)]
        keys = {(each["loader"], each["number"]) for each in begun}
        counts: dict[tuple[int, int], int] = {}
        for batch in process.of("batch"):
            key = batch["loader"], batch["pass"]
            if key in keys:
                counts[key] = counts.get(key, 0) + 1
        started, drawn = started + len(begun), drawn + sum(counts.values())
        steps = max(steps, process.steps)
        if any(count > 1 for count in counts.values()):
            return refuted(run, "a start of the loader on this line gave more than one batch")
    numbers = [Number("starts of the loader", started), Number("batches drawn", drawn)]
    if started > 2 and steps > 1:
        return confirmed(run, f"{started} starts of the loader gave {drawn} batches, one each", numbers)
    return still_open(run, "the loader was not started often enough to tell", numbers)


def order_per_epoch(claim: Claim, run: Run) -> Verdict:
    """Whether two epochs draw their samples in the same shuffled order."""
    same: list[Number] = []
    different: list[Number] = []
    for rank, process in run.ranks.items():
        for loader in process.of("loader"):
            orders = _shuffled_orders(process, loader, claim)
            if len(orders) > 1 and len(orders[0]) > 4:
                equal = sum(order == orders[0] for order in orders)
                number = Number("epochs in the first one's order", f"{equal} of {len(orders)}", rank=rank)
                (same if equal == len(orders) else different).append(number)
    if same and not different:
        return confirmed(run, "the epochs drew their samples in the same shuffled order", same)
    if different and not same:
        return refuted(run, "the epochs drew their samples in different orders", different)
    if same:
        return still_open(run, "some loaders drew the same order each epoch, some did not", [*same, *different])
    return still_open(run, "no such loader was drawn twice")


def _shuffled_orders(process: Process, loader: Event, claim: Claim) -> list[list[int]]:
    """The samples of each pass over a loader that shuffles."""
    if not loader["shuffle"] or ("set_epoch" in claim.message and loader["sampler"] == "RandomSampler"):
        return []
    passes = [each for each in process.of("pass") if each["loader"] == loader["loader"]]
    return [each["indices"] for each in passes if each["indices"] is not None]


def random_state_repeats(claim: Claim, run: Run) -> Verdict:
    """Whether the line puts a generator back into one state, from which numbers were drawn in between."""
    after: dict[int, list[Mapping[str, Sequence[str]]]] = {}
    for rank, event in hits(claim, run):
        after.setdefault(rank, []).append(event["changes"].get("rng", {}))
    seen = next((each for each in after.values() if len(each) > 1), None)
    if seen is None:
        return still_open(run, "the line ran once only")
    back = sorted(
        name
        for name in seen[0]
        if len({each[name][1] for each in seen if name in each}) == 1
        and any(each[name][0] != each[name][1] for each in seen[1:] if name in each)
    )
    numbers = [Number("times the line ran", len(seen))]
    if back:
        return confirmed(run, f"each time the line put the generator of {back[0]} into the same state", numbers)
    if any(each[name][0] != each[name][1] for each in seen for name in each):
        return refuted(run, "the line never put a generator into the same state twice", numbers)
    return still_open(run, "nothing was drawn from a generator between two runs of the line", numbers)


PROBES = {
    "sample-overlap": Probe(sample_overlap, meters=("loaders",), needs_lines=False),
    "dataset-hash-per-rank": Probe(dataset_hash, meters=("rng",), ranks=2),
    "data-wait": Probe(data_wait, meters=("loaders",), needs_lines=False, timed=True),
    "batches-per-epoch": Probe(batches_per_pass, meters=("loaders",)),
    "order-per-epoch": Probe(order_per_epoch, meters=("loaders",), needs_lines=False),
    "random-state-repeats": Probe(random_state_repeats, meters=("rng",)),
}
