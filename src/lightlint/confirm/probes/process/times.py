"""What lines cost: steps with and without a call, a line against its step, waits for a GPU, backward passes in anomaly mode."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from statistics import median

from lightlint.confirm.probes.probe import Probe, confirmed, hits, not_observable, refuted, still_open, through
from lightlint.confirm.records import Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_FEWEST = 3  # steps of each kind
_SLOWER = 1.05  # from this ratio on a call counts as slowing steps down
_SHARE = 0.01  # of a step, from which on a line is worth changing


def step_time_without(claim: Claim, run: Run) -> Verdict:
    """How long steps take behind a call, its own time included, and how long where it was left out."""
    calls = [(rank, event) for rank, event in run.each("timed-call") if through(event["places"], claim)]
    if not calls:
        return not_observable(run, "no GPU in this run: the call does nothing on the CPU")
    rank = calls[0][0]
    own = [event for each, event in calls if each == rank]
    executed = median([event["seconds"] for event in own if not event["skipped"]] or [0.0])
    timed = [event for event in own[2:] if event["since"] is not None]  # the first steps warm up
    behind = [event["since"] for event in timed if not event["behind_skipped"]]
    without = [event["since"] for event in timed if event["behind_skipped"]]
    if min(len(behind), len(without)) < _FEWEST:
        return still_open(run, f"fewer than {_FEWEST} steps with the call and as many without were timed")
    slow, fast = median(behind) + executed, median(without)
    peaks = {
        kind: max(_on_gpu(event["peak"]) for event in timed if event["behind_skipped"] is kind)
        for kind in (False, True)
    }
    numbers = [
        Number("step with the call", round(1000 * slow, 2), "ms", rank),
        Number("step without it", round(1000 * fast, 2), "ms", rank),
        Number("peak with the call", round(peaks[False], 1), "MiB", rank),
        Number("peak without it", round(peaks[True], 1), "MiB", rank),
    ]
    if slow > _SLOWER * fast:
        return confirmed(run, f"steps take {slow / fast:.1f} times as long with the call as without it", numbers)
    return refuted(run, "steps take as long with the call as without it", numbers)


def _on_gpu(peaks: Mapping[str, float]) -> float:
    return max((value for name, value in peaks.items() if name.startswith("cuda")), default=0.0)


def line_time(claim: Claim, run: Run) -> Verdict:
    """How much of a step the line takes where it copies to a GPU."""
    seen = [event for _, event in hits(claim, run)]
    if not any(name.startswith("cuda:") for event in seen for name in event["changes"].get("memory", {})):
        return not_observable(run, "no GPU in this run: nothing is copied")
    found = _share(claim, run)
    if found is None:
        return still_open(run, "the line did not run in enough steps")
    share, numbers = found
    if share >= _SHARE:
        return confirmed(run, f"the line takes {share:.1%} of a step", numbers)
    return refuted(run, f"the line takes {share:.2%} of a step", numbers)


def _share(claim: Claim, run: Run) -> tuple[float, list[Number]] | None:
    """Which part of a step the line takes on the first rank where both were seen often enough."""
    for rank, process in run.ranks.items():
        steps = [after.time - before.time for before, after in pairwise(process.of("step"))]
        taken = [event["seconds"] for each, event in hits(claim, run) if each == rank][1:]
        if len(steps) >= _FEWEST and len(taken) >= _FEWEST:
            return median(taken) / median(steps), [
                Number("time of the line", round(1000 * median(taken), 3), "ms", rank),
                Number("time of a step, recording included", round(1000 * median(steps), 3), "ms", rank),
            ]
    return None


def host_syncs(claim: Claim, run: Run) -> Verdict:
    """How often the line waits for a GPU, and how much of a step could go on meanwhile.

    What a wait costs is what the program does between it and its next work for the GPU, and never more than the wait
    itself: `waits` in tests/benchmarks/promises.py, 5 ms of loading cost 5 ms behind `item()` and nothing without it.
    """
    pairs = [event["changes"]["syncs"]["waits"] for _, event in hits(claim, run)]
    waits = [after - (before or 0) for before, after in pairs if after is not None]
    if not waits:
        return not_observable(run, "no GPU in this run: there is nothing to wait for")
    share, numbers = _share(claim, run) or (None, [])
    numbers = [Number("waits for the GPU each time", median(waits)), *numbers]
    if not any(waits):
        return refuted(run, f"the line ran {len(waits)} times and never waited for the GPU", numbers)
    if share is None:
        return still_open(
            run, "the line waits for the GPU, and did not run in enough steps to tell what that costs", numbers
        )
    most = min(share, 1 - share)
    reason = f"the line waits for {share:.1%} of a step, and without it at most {most:.1%} of a step could be saved"
    return confirmed(run, reason, numbers) if most >= _SLOWER - 1 else refuted(run, reason, numbers)


def anomaly_mode(claim: Claim, run: Run) -> Verdict:
    """In how many backward passes anomaly detection was on."""
    passes = [event["anomaly"] for _, event in run.each("loss")]
    numbers = [Number("backward passes", len(passes)), Number("of them with anomaly detection", sum(passes))]
    if len(passes) > 1 and all(passes):
        return confirmed(run, f"anomaly detection was on in all {len(passes)} backward passes", numbers)
    if passes and not any(passes):
        return refuted(run, f"anomaly detection was off in all {len(passes)} backward passes", numbers)
    return still_open(run, f"anomaly detection was on in {sum(passes)} of {len(passes)} backward passes", numbers)


PROBES = {
    "step-time-without": Probe(step_time_without, meters=("times",), timed=True),
    "host-syncs": Probe(host_syncs, meters=("syncs",)),
    "line-time": Probe(line_time, meters=("memory",)),
    "anomaly-mode": Probe(anomaly_mode, meters=("losses",)),
}
