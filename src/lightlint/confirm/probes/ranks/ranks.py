"""What the ranks of one run did differently: losses and graphs, steps, metrics, attributes, data sets."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lightlint.confirm.probes.probe import Probe, confirmed, hits, refuted, still_open
from lightlint.confirm.records import Event, Process, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_IMBALANCE = 16.0  # MiB that one rank's steps take more than another's, in every step
_LOST = re.compile(r"closed by peer|Connection reset|Connection closed|connection.*refused|gloo|NCCL", re.IGNORECASE)
_STALLED = {"stalled", "timed out"}


def loss_per_rank(claim: Claim, run: Run) -> Verdict:
    """Whether the ranks compute their losses by different operations, or by different branches of the finding's test.

    The operations are those that autograd records: what a branch does with the input alone shows in the branch only.
    """
    losses = {rank: list(process.of("loss")) for rank, process in run.ranks.items()}
    passes = min(map(len, losses.values()))
    if not passes:
        return still_open(run, "not every rank came to a backward pass")
    numbers = _loss_numbers(losses, passes) + _equal_parameters(run)
    graphs = [{each[at]["graph"] for each in losses.values()} for at in range(passes)]
    if all(len(each) > 1 for each in graphs):
        return confirmed(run, f"the ranks' losses come from different operations in each of {passes} steps", numbers)
    branches = _branches(claim, run)
    apart = len(branches) > 1 and all(len(rows) == 1 for rows in branches.values())
    if apart and len({row for rows in branches.values() for row in rows}) > 1:
        most, least = _imbalance(losses, passes)
        if most is not None and least is not None:
            return confirmed(
                run,
                f"the ranks take different branches, and rank {most} takes {_rise(losses[most]):.0f} MiB to its loss"
                f" where rank {least} takes {_rise(losses[least]):.0f}",
                numbers,
            )
        rows = ", ".join(f"rank {rank} goes on at row {next(iter(each))}" for rank, each in branches.items())
        return confirmed(run, f"{rows}, each time before a loss: what is averaged belongs to two functions", numbers)
    return still_open(run, "the ranks' losses come from the same operations", numbers)


def _branches(claim: Claim, run: Run) -> dict[int, set[int | None]]:
    """Where each rank went on behind the finding's test."""
    found: dict[int, set[int | None]] = {}
    for rank, event in hits(claim, run):
        found.setdefault(rank, set()).add(event.get("then"))
    return found


def _rise(losses: list[Event]) -> float:
    """MiB from the state before a forward pass to its peak: the least of all steps but the first, which has no before."""
    rises = [max(each["rise"].values(), default=0.0) for each in losses[1:]]
    return min(rises, default=0.0)


def _imbalance(losses: Mapping[int, list[Event]], passes: int) -> tuple[int | None, int | None]:
    """The ranks with the most and the least memory, where every step of one is well above every step of the other."""
    if passes < 2:
        return None, None
    most = max(losses, key=lambda rank: _rise(losses[rank]))
    least = min(losses, key=lambda rank: _rise(losses[rank]))
    highest = max((max(each["rise"].values(), default=0.0) for each in losses[least][1:]), default=0.0)
    return (most, least) if _rise(losses[most]) > highest + _IMBALANCE else (None, None)


def _loss_numbers(losses: Mapping[int, list[Event]], passes: int) -> list[Number]:
    numbers = []
    for rank, events in losses.items():
        values = [each["value"] for each in events[:passes] if each["value"] is not None]
        if values:
            numbers.append(Number("losses", ", ".join(f"{each:.6g}" for each in values[:8]), rank=rank))
        if passes > 1:
            numbers.append(Number("memory from a step's begin to its loss", round(_rise(events), 1), "MiB", rank))
    return numbers


def _equal_parameters(run: Run) -> list[Number]:
    """After how many steps the ranks held the same parameters."""
    states = [
        [event["tensors"] for event in process.of("parameters") if event["when"] == "after"]
        for process in run.ranks.values()
    ]
    steps = min(map(len, states))
    same = sum(all(each[at] == states[0][at] for each in states) for at in range(steps))
    return [Number("steps after which all ranks held the same parameters", f"{same} of {steps}")] if steps else []


def steps_per_rank(claim: Claim, run: Run) -> Verdict:
    """Whether the ranks took their steps from the same numbers of batches, and as many of them."""
    skipped = [(rank, event) for rank, event in run.each("exception") if "returning None" in event["message"]]
    numbers = [Number("optimizer steps", process.steps, rank=rank) for rank, process in run.ranks.items()]
    drawn = {rank: len(process.of("batch")) for rank, process in run.ranks.items()}
    numbers += [Number("batches drawn", count, rank=rank) for rank, count in drawn.items()]
    if skipped:
        return confirmed(run, f"rank {skipped[0][0]} returned None, for which Lightning ended the run", numbers)
    at = [_drawn_for_steps(process) for process in run.ranks.values()]
    for step in sorted(set(at[0]).intersection(*at[1:])):
        if len({each[step] for each in at}) > 1:
            counts = ", ".join(f"rank {rank} {each[step]}" for rank, each in zip(run.ranks, at, strict=True))
            return confirmed(run, f"at step {step} the ranks had drawn different numbers of batches: {counts}", numbers)
    steps = {rank: process.steps for rank, process in run.ranks.items()}
    ended = all(any(process.of("end")) for process in run.ranks.values())
    reached = {rank for rank, _ in hits(claim, run)}
    if len(set(steps.values())) > 1 and ended and run.ended in {"finished", "cut"}:
        return confirmed(run, f"the ranks took {' and '.join(map(str, steps.values()))} steps", numbers)
    if run.ended in _STALLED and reached and reached != set(run.ranks):
        ranks = ", ".join(str(rank) for rank in sorted(reached))
        return confirmed(run, f"only rank {ranks} came to this line, and then the run stood still", numbers)
    lost = [event for _, event in run.each("exception") if _LOST.search(event["message"])]
    if reached and reached != set(run.ranks) and lost and len(set(drawn.values())) > 1:
        ranks = ", ".join(str(rank) for rank in sorted(reached))
        return confirmed(run, f"only rank {ranks} came to this line, and another lost its connection to it", numbers)
    return still_open(run, "the ranks kept step in this run", numbers)


def _drawn_for_steps(process: Process) -> dict[int, int]:
    """For each step, the batches drawn so far from the loader that it took its own from: others are evaluated on."""
    drawn: dict[int, int] = {}
    last, at = None, {}
    for event in process.of("batch", "step"):
        if event.kind == "batch":
            last = event["loader"]
            drawn[last] = drawn.get(last, 0) + 1
        elif last is not None:
            at[event["n"]] = drawn[last]
    return at


def metrics_per_rank(claim: Claim, run: Run) -> Verdict:
    """Whether the ranks hold different values of the finding's metric behind the same validation."""
    wanted = {name for key in claim.details.values() for name in (key, f"{key}_epoch")}
    by_time: dict[tuple[str, int, str], dict[int, float | None]] = {}
    for rank, event in run.each("metrics"):
        for name in wanted:
            place = event["when"], event["epoch"], name
            by_time.setdefault(place, {})[rank] = event["values"].get(name)
    full = {place: each for place, each in by_time.items() if set(each) == set(run.ranks)}
    present = {place: each for place, each in full.items() if any(value is not None for value in each.values())}
    if not present:
        return still_open(run, "no rank logged this metric in the run")
    for (when, epoch, name), each in sorted(present.items(), key=lambda item: item[0][1]):
        if len({repr(value) for value in each.values()}) > 1:  # nan is not equal to itself
            numbers = [Number(f"`{name}`", "absent" if v is None else v, rank=rank) for rank, v in each.items()]
            return confirmed(run, f"the ranks hold different values of `{name}` at {when} of epoch {epoch}", numbers)
    if len({repr(value) for each in present.values() for value in each.values()}) < 2:
        return still_open(run, "the ranks hold the same one value, which a longer run may not")
    return refuted(run, f"the ranks hold the same values at {len(present)} points of the run")


def attributes_per_rank(claim: Claim, run: Run) -> Verdict:
    """Whether what `prepare_data` set on one rank is missing on another."""
    named = next(iter(claim.details.values()), "").removeprefix("self.")
    missing = [
        (rank, event)
        for rank, event in run.each("exception")
        if event["type"] in {"AttributeError", "TypeError"} and named and f"'{named}'" in event["message"]
    ]
    if missing:
        rank, event = missing[0]
        return confirmed(run, f"rank {rank} raised {event['type']}: {event['message'].splitlines()[0]}")
    held = {rank: {*event.get("data_module", ()), *event.get("module", ())} for rank, event in run.each("attributes")}
    if set(held) != set(run.ranks) or not named:
        return still_open(run, "not every rank began to train")
    have = {rank for rank, names in held.items() if named in names}
    set_here = {rank for rank, _ in hits(claim, run)}
    if have and have != set(held):
        return confirmed(run, f"only rank {', '.join(map(str, sorted(have)))} has `self.{named}` when training starts")
    if set_here and set_here != set(held):
        ranks = ", ".join(map(str, sorted(set_here)))
        return still_open(run, f"only rank {ranks} ran the line, and each rank has an attribute of that name")
    return refuted(run, f"each rank has `self.{named}` when training starts")


def shared_storage(claim: Claim, run: Run) -> Verdict:
    """Whether the places of a list are one tensor."""
    for rank, event in hits(claim, run):
        for name, after in _new_lists(event).items():
            if after[1] < after[0]:
                numbers = [Number(f"places of `{name}`", after[0], rank=rank), Number("tensors in them", after[1])]
                return confirmed(run, f"the {after[0]} places of `{name}` hold {after[1]} tensor", numbers)
    for rank, event in run.each("collective"):
        if event["items"] > max(1, event["distinct"]) and any(_in(place, claim) for place in event["places"]):
            numbers = [Number("places", event["items"], rank=rank), Number("tensors in them", event["distinct"])]
            return confirmed(run, f"`{event['name']}` got {event['items']} places that are one tensor", numbers)
    if any(_new_lists(event) for _, event in hits(claim, run)):
        return refuted(run, "each place of the list holds a tensor of its own")
    return still_open(run, "the list was not seen when the line ran")


def _new_lists(event: Event) -> dict[str, list[int]]:
    """The lists of tensors that the lines made: their places and the tensors in them."""
    pairs = event["changes"].get("aliases", {})
    return {name: after for name, (before, after) in pairs.items() if after and before != after}


def _in(place: tuple[str, int, str], claim: Claim) -> bool:
    return place[0] == claim.file and claim.first <= place[1] <= claim.last


def same_dataset(claim: Claim, run: Run) -> Verdict:
    """Whether the subsets that the message names are parts of one data set."""
    names = {name.removesuffix(".dataset") for name in claim.details.values()}
    for _, event in hits(claim, run):
        held = {name: after for name, (_, after) in event["changes"].get("datasets", {}).items() if name in names}
        if len(held) > 1:
            listed = " and ".join(f"`{name}`" for name in sorted(held))
            if len(set(held.values())) == 1:
                return confirmed(run, f"{listed} are parts of one data set object")
            return refuted(run, f"{listed} are parts of different data sets")
    return still_open(run, "the parts were not in variables when the line ran")


PROBES = {
    "loss-per-rank": Probe(loss_per_rank, meters=("losses", "parameters"), ranks=2),
    "steps-per-rank": Probe(steps_per_rank, meters=("loaders",), ranks=2, needs_lines=False),
    "callback-metrics-per-rank": Probe(metrics_per_rank, meters=("trainer",), ranks=2, needs_lines=False),
    "attributes-per-rank": Probe(attributes_per_rank, meters=("holders",), ranks=2, needs_lines=False),
    "shared-storage": Probe(shared_storage, meters=("holders", "collectives")),
    "same-dataset": Probe(same_dataset, meters=("holders",)),
}
