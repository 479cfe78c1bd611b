"""Whether the copies of a model on the ranks of a run stayed the same."""

from __future__ import annotations

from lightlint.confirm.probes.probe import Probe, confirmed, refuted, still_open
from lightlint.confirm.probes.training.updates import first_divergence
from lightlint.confirm.records import Run
from lightlint.confirm.verdict import Claim, Number, Verdict


def parameters_per_rank(_claim: Claim, run: Run) -> Verdict:
    """The first step after which the ranks hold different parameters; equal ones prove something on unequal batches only."""
    steps = [Number("optimizer steps", process.steps, rank=rank) for rank, process in run.ranks.items()]
    step = first_divergence(run)
    if step is not None:
        return confirmed(run, f"the ranks' parameters differ from step {step} on", steps)
    if not run.steps:
        return still_open(run, "no optimizer stepped")
    if _batches_differ(run):
        return refuted(run, "the ranks' parameters stayed equal on different batches", steps)
    return still_open(run, "the ranks' parameters stayed equal, on equal batches or none", steps)


def _batches_differ(run: Run) -> bool:
    drawn = [[event["digest"] for event in process.of("batch")] for process in run.ranks.values()]
    return all(drawn) and all(first != other for first, other in zip(drawn[0], drawn[1], strict=False))


PROBES = {"parameters-per-rank": Probe(parameters_per_rank, meters=("parameters", "loaders"), ranks=2)}
