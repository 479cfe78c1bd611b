"""Memory of ranks and GPUs at a finding's lines, and gradients that stay."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lightlint.confirm.probes.probe import Probe, confirmed, hits, not_observable, refuted, still_open
from lightlint.confirm.records import Event, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_GPU = re.compile(r"cuda:\d+")
_BY_DRIVER = " by the driver"
_NOTHING = 0.5  # MiB: below it nothing was allocated


def on_foreign_gpu(claim: Claim, run: Run) -> Verdict:
    """Whether the finding's line puts memory of a rank on a GPU that is another rank's."""
    refused = [event for _, event in run.each("exception") if _is_refusal(event)]
    if refused:
        return confirmed(run, f"the run ended with {refused[0]['type']}: CUDA was in use before the ranks were made")
    own = {rank: event["device"] for rank, event in run.each("loss", "trainer-start")}
    if claim.name == "missing-set-device":
        return _one_device(run)
    moved = {(rank, device): mib for rank, event in hits(claim, run) for device, mib in _allocated(event).items()}
    if not moved:
        return not_observable(run, "the line allocated nothing on a GPU in this run")
    numbers = [
        Number(f"allocated on {device} at this line", round(mib, 1), "MiB", rank)
        for (rank, device), mib in moved.items()
    ]
    contexts = {(rank, device): mib for rank, event in hits(claim, run) for device, mib in _contexts(event).items()}
    numbers += [
        Number(f"held on {device} with the context made here", mib, "MiB", rank)
        for (rank, device), mib in contexts.items()
    ]
    foreign = [(rank, device) for rank, device in moved if own.get(rank, device) != device]
    if foreign:
        rank, device = foreign[0]
        mib = moved[foreign[0]]
        context = f" of {contexts[foreign[0]]:.0f} MiB" if foreign[0] in contexts else ""
        took = f"took {mib:.0f} MiB on {device}" if mib > _NOTHING else f"made a CUDA context{context} on {device}"
        return confirmed(run, f"rank {rank}, whose device is {own[rank]}, {took} here", numbers)
    if not own:
        return still_open(run, "no rank came to a step, which shows its own device", numbers)
    if run.world == 1:
        return refuted(
            run, f"the one device is the one that the Trainer uses, {moved and next(iter(moved))[1]}", numbers
        )
    return refuted(run, "each rank took memory on its own device only", numbers)


def _one_device(run: Run) -> Verdict:
    """Whether several ranks compute their losses on one GPU."""
    devices = {rank: event["device"] for rank, event in run.each("loss")}
    twice = [(rank, event) for rank, event in run.each("exception") if "Duplicate GPU" in event["message"]]
    if twice:
        return confirmed(run, f"rank {twice[0][0]} raised {twice[0][1]['type']}: several ranks use one GPU")
    numbers = [Number("device of the loss", device, rank=rank) for rank, device in devices.items()]
    if len(devices) < 2 or not all(device.startswith("cuda") for device in devices.values()):
        return not_observable(run, "shows where each rank trains on a GPU", numbers)
    if len(set(devices.values())) < len(devices):
        return confirmed(run, "several ranks compute on one GPU", numbers)
    return refuted(run, "each rank computes on a GPU of its own", numbers)


def _is_refusal(event: Event) -> bool:
    text = event["message"]
    return "CUDA" in text and (
        "forked subprocess" in text or "already initialized" in text or "initialized CUDA" in text
    )


def _allocated(event: Event) -> Mapping[str, float]:
    """MiB more on each GPU behind the lines than before, or at their peak; a new context counts with 0 MiB."""
    pairs = event["changes"].get("memory", {})
    found: dict[str, float] = {}
    for name, (before, after) in pairs.items():
        if not _GPU.fullmatch(name):
            continue
        top = max(after, (pairs.get(f"{name} peak") or (0, 0))[1] or 0)
        more = top - (before or 0)
        if more > _NOTHING or before is None:
            found[name] = more
    return found


def _contexts(event: Event) -> Mapping[str, float]:
    """What the process held on each GPU, by the driver, behind the lines that made its context there."""
    return {
        name.removesuffix(_BY_DRIVER): after
        for name, (before, after) in event["changes"].get("memory", {}).items()
        if name.endswith(_BY_DRIVER) and before is None and after is not None
    }


def gradients_stay(claim: Claim, run: Run) -> Verdict:
    """Whether gradients lie in memory behind the call that clears them."""
    pairs = [(rank, event["changes"]["memory"]["gradients"]) for rank, event in hits(claim, run)]
    seen = [(rank, before, after) for rank, (before, after) in pairs if before]
    if not seen:
        return still_open(run, "no gradient was there when the line ran")
    numbers = [
        Number(f"gradients {when} the call", each, "MiB", seen[-1][0])
        for when, each in (("before", seen[-1][1]), ("behind", seen[-1][2]))
    ]
    if any(after for _, _, after in seen):
        return confirmed(run, f"{seen[-1][2]:.3g} MiB of gradients stay allocated behind the call", numbers)
    return refuted(run, "no gradient is left behind the call", numbers)


PROBES = {
    "memory-per-rank-and-gpu": Probe(on_foreign_gpu, meters=("memory", "losses")),
    "device-per-rank": Probe(on_foreign_gpu, meters=("memory", "losses"), ranks=2),
    "memory-after-zero-grad": Probe(gradients_stay, meters=("memory",)),
}
