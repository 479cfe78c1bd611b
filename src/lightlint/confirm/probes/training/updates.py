"""What optimizer steps, and writes past them, do to the weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lightlint.confirm.probes.probe import Probe, confirmed, hits, not_observable, refuted, still_open
from lightlint.confirm.records import Event, Run
from lightlint.confirm.verdict import Claim, Number, Verdict


def weights_changed_unseen(claim: Claim, run: Run) -> Verdict:
    """Whether the line changes weights without autograd's version counts moving, and whether ranks stay equal."""
    unseen: dict[int, set[str]] = {}
    seen: set[str] = set()
    example = ""
    for rank, event in hits(claim, run):
        for name, (before, after) in event["changes"].get("parameters", {}).items():
            if before is None or after is None or before[0] == after[0]:
                continue
            if before[1] == after[1]:
                unseen.setdefault(rank, set()).add(name)
                example = example or f"`{name}` {before[0]} -> {after[0]}, version {before[1]} -> {after[1]}"
            else:
                seen.add(name)
    if unseen:
        numbers = [Number("weights changed", len(names), "tensors", rank) for rank, names in unseen.items()]
        numbers += [Number("first", example)]
        return confirmed(
            run, f"the line changes weights behind autograd's back: {example}{_of_ranks(run)}", numbers + _hashes(run)
        )
    if seen:
        return refuted(run, f"the line changes weights, and autograd sees it: {', '.join(sorted(seen)[:3])}")
    if not any("parameters" in event["changes"] for _, event in hits(claim, run)):
        return not_observable(run, "no parameter could be looked at from the line")
    return still_open(run, "the line ran and changed no weight")


def _of_ranks(run: Run) -> str:
    if run.world < 2:
        return ""
    step = first_divergence(run)
    if step is None:
        return "; it does on every rank alike: the ranks stay equal"
    return f"; the ranks hold different weights from step {step} on"


def _hashes(run: Run) -> list[Number]:
    last = {rank: _updates(process.of("parameters")) for rank, process in run.ranks.items()}
    return [
        Number(f"weights after step {len(events)}", next(iter(events[-1]["tensors"].values())), rank=rank)
        for rank, events in last.items()
        if events and events[-1]["tensors"]
    ]


def first_divergence(run: Run) -> int | None:
    """The first update (from 1) after which ranks hold different weights."""
    ranks = [_updates(process.of("parameters")) for process in run.ranks.values()]
    for number, events in enumerate(zip(*ranks, strict=False), start=1):
        if any(event["tensors"] != events[0]["tensors"] for event in events):
            return number
    return None


def _updates(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event["when"] == "after"]


def weights_change(claim: Claim, run: Run) -> Verdict:
    """Whether the weights stay what they were although backward passes ran."""
    for rank, process in run.ranks.items():
        looks = [event for event in process.of("parameters") if event["tensors"]]
        steps = sum(event["when"] == "after" for event in looks)
        passes = sum(event["when"] == "backward" for event in looks)
        changed = _changed(looks)
        numbers = [
            Number("optimizer steps", steps, rank=rank),
            Number("weights changed", len(changed), "tensors", rank),
        ]
        if steps and changed:
            return refuted(run, f"{steps} optimizer steps change {len(changed)} weights", numbers)
        if steps:
            return still_open(run, f"{steps} optimizer steps change no weight, for another reason", numbers)
        if passes > 1 and not changed:
            return confirmed(run, f"{passes} backward passes and no optimizer step: no weight has changed", numbers)
        if passes > 1:
            return refuted(run, f"weights change without an optimizer step: {', '.join(sorted(changed)[:3])}", numbers)
    return not_observable(run, "no two backward passes ran in this run")


def _changed(looks: Sequence[Event]) -> set[str]:
    first: dict[str, str] = {}
    changed: set[str] = set()
    for event in looks:
        for name, crc in event["tensors"].items():
            if first.setdefault(name, crc) != crc:
                changed.add(name)
    return changed


def _pairs(events: Sequence[Event]) -> Iterator[tuple[Event, Event]]:
    """What an optimizer's parameters were before and after each of its steps."""
    waiting: dict[int, Event] = {}
    for event in events:
        if event["when"] == "before":
            waiting[event["optimizer"]] = event
        elif event["when"] == "after" and event["optimizer"] in waiting:
            yield waiting.pop(event["optimizer"]), event


def _all_steps(run: Run) -> tuple[int, int]:
    """How many optimizer steps there were and how many of them changed any weight."""
    pairs = [pair for process in run.ranks.values() for pair in _pairs(process.of("parameters"))]
    return len(pairs), sum(before["tensors"] != after["tensors"] for before, after in pairs)


def weights_unchanged(claim: Claim, run: Run) -> Verdict:
    """Whether the line clears gradients that the next step of the optimizer then lacks."""
    cleared = used = 0
    for _, process in run.ranks.items():
        here: set[int] = set()
        for event in process.of("zero-grad", "update", "backward"):
            if event.kind == "backward":
                here = set()
            elif event.kind == "zero-grad":
                if claim.index in event["findings"] and event["held"]:
                    here |= set(event["optimizers"])
            elif event["optimizer"] in here:
                cleared += event["held"] == 0
                used += event["held"] > 0
    numbers = [Number("steps without gradients behind the line", cleared), Number("steps with some", used)]
    if cleared and not used:
        steps, changing = _all_steps(run)
        return confirmed(
            run,
            f"the line clears the gradients of the pass before it, and {cleared} steps then find none: "
            f"{changing} of {steps} steps change a weight",
            numbers,
        )
    if used:
        return still_open(run, f"{used} of {used + cleared} steps behind the line still find gradients", numbers)
    return still_open(run, "the line cleared no gradients that a step of this run lacked", numbers)


PROBES = {
    "weights-changed-unseen": Probe(weights_changed_unseen, meters=("parameters",)),
    "weights-change": Probe(weights_change, meters=("parameters",), needs_lines=False),
    "parameters-change": Probe(weights_change, meters=("parameters",), needs_lines=False),
    "weights-unchanged": Probe(weights_unchanged, meters=("parameters", "gradients")),
}
